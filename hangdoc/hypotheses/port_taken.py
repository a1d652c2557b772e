"""HD420: the launch failed because somebody else has its port."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._log_failures import log_names, nothing_goes_on
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.link import LinkEnd
from hangdoc.model.reading import Missing


def _listeners(case: Case) -> tuple[LinkEnd, ...] | Missing:
    around = case.features.surroundings
    if isinstance(around, Missing):
        return around
    return around.value.listeners if isinstance(around.value.listeners, Missing) else around.value.listeners.value


def _somebody_else_listens(case: Case) -> Outcome:
    """A process outside the launch listens on the launch's port now."""
    found = _listeners(case)
    if isinstance(found, Missing):
        return Unread.of(found, "who listens on its port")
    if not found:
        return Absent("nobody outside the launch listens on its port now; it may be another of its ports")
    return Present(f"{_names(found)} listens on its port")


def _names(ends: tuple[LinkEnd, ...]) -> str:
    return ", ".join(f"pid {end.process.pid} ({end.command})" for end in ends)


def _culprits(case: Case) -> tuple[Culprit, ...]:
    found = _listeners(case)
    return tuple(
        Culprit(
            pid=end.process.pid,
            start_ticks=end.process.start_ticks,
            tid=None,
            role="other",
            rank={},
            outside=True,
            reason=f"{end.command}, outside the launch, listens on its port",
        )
        for end in (() if isinstance(found, Missing) else found)
    )


def _headline(case: Case) -> str:
    found = _listeners(case)
    who = _names(found) if not isinstance(found, Missing) and found else "somebody"
    return f"The launch could not have its port: {who} has it."


HYPOTHESIS = Hypothesis(
    id="HD420",
    name="port-taken",
    verdict="crashed",
    suspects=signs.the_launch,
    essential=(log_names("port-taken", "a port that was in use"), nothing_goes_on),
    supporting=(log_names("port-taken", "a port that was in use"), _somebody_else_listens),
    headline=_headline,
    culprits=_culprits,
    action="End the process that has the port (with its whole launch), or start with another --port.",
    playbook="port-taken",
)
