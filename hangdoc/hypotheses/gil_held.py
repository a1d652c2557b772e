"""HD103: a thread keeps the interpreter lock, burns CPU and gets nowhere, while others wait for the lock."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import SPIN_DEMAND_RATIO
from hangdoc.features.launch_waits import unread_locks
from hangdoc.features.locks import Starvation, gil_starvation
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._peers import is_waited_for
from hangdoc.hypotheses._waits import place, stack_of
from hangdoc.hypotheses.python_busy_loop import is_in, polls_for_requests
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.reading import Known, Missing, Reading

KEPT_S = 9.0
"""How long the lock has to be kept: three looks that are 5 s apart, less their jitter. Sorting ten million numbers
keeps it for some seconds; otherwise arbitrary."""


def starvation_of(case: Case) -> Reading[Starvation | None]:
    """Return who keeps the suspect's interpreter lock."""
    member = case.patient
    if isinstance(member.locks, Missing):
        return member.locks
    if (unread := unread_locks(member)) is not None:
        return unread
    if not member.locks.value:
        return Missing("locks", "not-taken", "the trace is older than the probe")
    gil = member.locks.value[-1][1].gil
    return gil if isinstance(gil, Missing) else Known(gil_starvation(member.key.pid, member.locks.value))


def keeps_the_lock(case: Case) -> Outcome:
    """A thread holds the interpreter lock, its count of switches stands over readings, and others wait for it.

    Rule: Python code gives the lock away 5 ms after somebody asks for it; a holder that does not is in native code.
    Fails for one long native call that works (a sort of a huge list), which ends some time: so the rest of a server has
    to wait for it, too, or the silence to outlast its phase's patience.
    """
    found, name = starvation_of(case), signs.name_of(case.patient.process)
    if isinstance(found, Missing):
        return Unread.of(found, f"who holds the interpreter lock of {name}")
    if found.value is None:
        return Absent(f"no thread of {name} keeps the interpreter lock from others")
    if found.value.held_s < KEPT_S:
        return Unread(f"whether one long call just ends later: {sentence_of(case)}")
    return Present(f"{name}: {sentence_of(case)}")


def sentence_of(case: Case) -> str:
    """Say who keeps the lock, where and since when."""
    found = starvation_of(case)
    if isinstance(found, Missing) or found.value is None:
        return "who holds the interpreter lock is not known"
    thread = stack_of(case.patient, found.value.holder_tid)
    return found.value.sentence("" if thread is None else signs.where(thread))


def _burns(case: Case) -> Outcome:
    """The holder is on a CPU, or waiting for one, nearly all the time."""
    name = signs.name_of(case.patient.process)
    clocks = case.patient.clocks
    if isinstance(clocks, Missing):
        return Unread.of(clocks, f"threads of {name}")
    burning = {tid for tid, thread in clocks.value.items() if thread.demand_ratio >= SPIN_DEMAND_RATIO}
    if not burning:
        return Absent(f"no thread of {name} burns CPU")
    found = starvation_of(case)
    if isinstance(found, Missing) or found.value is None:
        return Unread(f"whether the thread of {name} that burns CPU holds the interpreter lock")
    holder = found.value.holder_tid
    if holder not in burning:
        return Absent(f"thread {holder} of {name} holds the interpreter lock and does not burn CPU")
    return Present(f"thread {holder} of {name} burns CPU: demand {clocks.value[holder].demand_ratio:.2f}")


def keepers(case: Case) -> tuple[Culprit, ...]:
    """Name the thread that keeps the lock."""
    found = starvation_of(case)
    if isinstance(found, Missing) or found.value is None:
        return ()
    tid = found.value.holder_tid
    return (signs.culprit(case.patient, f"keeps the interpreter lock (GIL) in {place(case.patient, tid)}", tid),)


HYPOTHESIS = Hypothesis(
    id="HD103",
    name="gil-held",
    verdict="busy-wait",
    suspects=signs.each_mover,
    essential=(
        _burns,
        signs.nothing_progresses,
        keeps_the_lock,
        signs.positive_or_patience(is_waited_for),
        signs.readings_are_steady,
    ),
    supporting=(keeps_the_lock, _burns, signs.log_is_silent_too_long),
    confirm_at=3,
    excluding=(polls_for_requests, is_in("import", "compile"), signs.nobody_died),
    headline=lambda case: f"{signs.name_of(case.patient.process)} is kept by one thread: {sentence_of(case)}.",
    culprits=keepers,
    action="Look at the native call under the frame named above: it never gives the interpreter lock back.",
    playbook="gil-held",
)
