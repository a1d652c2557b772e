"""HD903: more ranks came to the barrier of torch's store than the group has, so that it never ends."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.hypotheses import _log_signs as logs
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.log import LogEvent
from hangdoc.model.reading import Missing


def _waits(case: Case) -> tuple[LogEvent, ...]:
    log = case.features.log
    if isinstance(log, Missing):
        return ()
    return tuple(event for event in log.value.complaints if event.name == "store-barrier")


def _too_many_came(case: Case) -> Outcome:
    """The barrier counts more ranks than it waits for: it ends at exactly that number, and will not."""
    if isinstance(case.features.log, Missing):
        return Unread.of(case.features.log, "what its barrier counts")
    waits = _waits(case)
    if not waits:
        return Absent("nobody says that it waits in the store's barrier")
    last = waits[-1]
    if last.numbers.get("came", 0) > last.numbers.get("world", 0):
        return Present(f"its log says: {last.text}")
    return Unread(f"its log says: {last.text}; the others may still come")


def _it_went_on(case: Case) -> Outcome:
    """The start went on after the last such line."""
    waits = _waits(case)
    return logs.went_on(case.features, waits[-1] if waits else None)


HYPOTHESIS = Hypothesis(
    id="HD903",
    name="hung-in-store-barrier",
    verdict="hung",
    suspects=signs.the_launch,
    essential=(logs.log_is_all, _too_many_came),
    contrary=(logs.still_lives,),
    excluding=(_it_went_on,),
    headline="More ranks came to the store's barrier than the group has: two jobs share the port.",
    action="End the job that was left over, or give this one another port.",
    playbook="hung-in-store-barrier",
)
