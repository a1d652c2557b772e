"""HD120: the scheduler is lost in a loop of its own, between two batches, while requests wait."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._event_loops import FEWEST_TO_STAY, LONG_WALK_S, place_below_event_loop, seen_s
from hangdoc.hypotheses.python_busy_loop import is_in, spinning_thread
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.reading import Known, Missing


def _burns(case: Case) -> Outcome:
    """Its main thread is on a CPU, or waiting for one, nearly all the time."""
    name, thread = signs.name_of(case.patient.process), spinning_thread(case.patient)
    if isinstance(thread, Missing):
        return Unread.of(thread, f"threads of {name}")
    if thread.value is None or thread.value.tid != case.patient.key.pid:
        return Absent(f"the main thread of {name} does not burn CPU")
    return Present(f"the main thread of {name} burns CPU")


def _stays_below_its_event_loop(case: Case) -> Outcome:
    """Five stacks over 8 s or more all lie in one function that its event loop called; none of them asks for work."""
    name, main = signs.name_of(case.patient.process), case.patient.main
    if isinstance(main, Missing):
        return Unread.of(main, f"stack of {name}")
    if not main.value.always_does("event-loop"):
        return Absent(f"{name} is not in its event loop: {signs.where(main.value)}")
    place = place_below_event_loop(main.value)
    if place is None:
        return Absent(f"{name} goes round its event loop: {signs.where(main.value)}")
    if len(main.value.views) < FEWEST_TO_STAY or seen_s(case.patient) < LONG_WALK_S:
        return Unread(
            f"{len(main.value.views)} stacks of {name} over {seen_s(case.patient):.0f} s, all in one function: "
            f"{FEWEST_TO_STAY} over {LONG_WALK_S:.0f} s are needed"
        )
    where = signs.place_of(place.frame)
    if not place.moves:
        return Unread(f"{len(main.value.views)} stacks all at {where}: a native call under it looks the same")
    return Present(f"{len(main.value.views)} stacks of {name} all in {where}, called from its event loop")


def _holds_the_gil(case: Case) -> Outcome:
    """It held the interpreter lock in most stacks: the time goes by in Python."""
    main = case.patient.main
    if isinstance(main, Missing):
        return Unread.of(main, "who holds the interpreter lock")
    holds = sum(view.owns_gil for view in main.value.views)
    sentence = f"it held the interpreter lock in {holds} of {len(main.value.views)} stacks"
    return Present(sentence) if holds * 2 > len(main.value.views) else Absent(sentence)


def _place(case: Case) -> str:
    main = case.patient.main
    found = place_below_event_loop(main.value) if isinstance(main, Known) else None
    return signs.place_of(found.frame) if found is not None else "its code"


def _culprits(case: Case) -> tuple[Culprit, ...]:
    return (signs.culprit(case.patient, f"loops in {_place(case)} and never comes back to its event loop"),)


HYPOTHESIS = Hypothesis(
    id="HD120",
    name="host-loop-in-scheduler",
    verdict="busy-wait",
    suspects=signs.each_mover,
    essential=(
        _burns,
        _stays_below_its_event_loop,
        _holds_the_gil,
        signs.nothing_progresses,
        signs.readings_are_steady,
    ),
    supporting=(_stays_below_its_event_loop, _holds_the_gil, signs.log_is_silent_too_long),
    confirm_at=3,
    excluding=(is_in("import", "compile"), signs.nobody_died),
    headline=lambda case: f"{signs.name_of(case.patient.process)} loops in {_place(case)} and takes no requests.",
    culprits=_culprits,
    action="Read the function named above; try without the cache, grammar or check that it belongs to; start again.",
    playbook="host-loop-in-scheduler",
)
