"""HD304: the launch is somewhere else in its start, and it moves."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import activity
from hangdoc.features.phases import STARTING
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._waits import is_native
from hangdoc.model.log import Phase
from hangdoc.model.reading import Known, Missing

_OWN: dict[Phase, str] = {
    "launch": "slow-start-importing",
    "weight-load": "slow-start-loading-weights",
    "jit-compile": "slow-start-compiling",
}
"""Phases whose slow start is a hypothesis of its own."""


def _another_start_phase(case: Case) -> Outcome:
    """The phase is one of a start for which there is no hypothesis of its own; unknown counts as one."""
    phase = case.features.phase
    if phase in _OWN:
        return Absent(f"the launch is in {phase}: see {_OWN[phase]}")
    if phase == "unknown":
        for member in case.features.movers:
            lost = isinstance(member.dumps, Missing) and member.dumps.reason == "not-taken"
            if lost or (isinstance(member.dumps, Known) and member.dumps.value.outdated):
                return Unread(f"in which phase {signs.name_of(member.process)} is by now")
        return Present("the phase is not known")
    return Present(f"the launch is in {phase}") if phase in STARTING else Absent(f"the launch is in {phase}")


FEWEST_STEPS = 2
"""Lines in which its count has risen: one may be the last thing that it got done. Arbitrary above one."""


def _moves(case: Case) -> Outcome:
    """It shows work; or, where no engine's tables say what a log means, its log counts on.

    Why it works: who counts steps does them; a line that says the same number again does not count.
    """
    worked = signs.does("works")(case)
    log = case.features.log
    if isinstance(worked, Present) or signs.is_server(case.features) or isinstance(log, Missing):
        return worked
    if activity(case.patient) == Known("still"):
        return worked  # whoever writes the log is somebody else
    steps = [event for event in log.value.fresh if event.kind == "progress"]
    if len(steps) < FEWEST_STEPS:
        return worked
    return Present(f"its log goes on: {steps[-1].text}")


def _headline(case: Case) -> str:
    does = "is still starting, and it moves" if signs.is_server(case.features) else "works, and it gets on"
    return f"{signs.name_of(case.patient.process)} {does}."


def _has_started(case: Case) -> Outcome:
    """Excluding: it is in its event loop and nobody waits for the warm-up, so that it has started."""
    main = case.patient.main
    if is_native(case.patient):
        return Absent(f"{signs.name_of(case.patient.process)} is no Python process: it has no event loop of a server")
    if isinstance(main, Missing):
        return Unread.of(main, f"stack of {signs.name_of(case.patient.process)}")
    if main.value.ever_does("event-loop") and case.features.phase != "warmup":
        return Present("it is in its event loop: it has started")
    return Absent("it is not in an event loop")


HYPOTHESIS = Hypothesis(
    id="HD304",
    name="slow-start-moving",
    verdict="slow-start",
    suspects=signs.each_mover,
    essential=(_another_start_phase, _moves),
    excluding=(_has_started, signs.nobody_died),
    confirm_at=1,
    headline=_headline,
    culprits=lambda case: (
        signs.culprit(case.patient, "is starting" if signs.is_server(case.features) else "is at work"),
    ),
    action="Wait; run hangdoc again if it is silent much longer than a good start.",
    playbook="slow-start-moving",
)
