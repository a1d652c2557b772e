"""HD208: a rank waits for a file lock that a living process holds, of the launch or outside it."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.hypotheses import _file_locks as locks
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._chains import culprit_at, end_name, who_moves
from hangdoc.hypotheses._standstill import may_go_on
from hangdoc.hypotheses._waits import timer_of_its_own
from hangdoc.model.diagnosis import Culprit, Wait, WaitEnd
from hangdoc.model.link import LinkEnd
from hangdoc.model.reading import Missing


def _waits_for_a_file_lock(case: Case) -> Outcome:
    """A working thread of it waits in flock or fcntl, or polls for a lock file, and a living process holds that."""
    name, wait = signs.name_of(case.patient.process), locks.file_lock(case.patient)
    asks = locks.asks_for_a_file_lock(case)
    if isinstance(wait, Missing) or wait.value is None:
        return asks
    if wait.value.nobody_lives:
        return Absent(f"nobody who lives holds the {wait.value.what} that {name} asks for")
    if not locks.holders_of(case):
        return Unread(f"who holds the lock that {name} waits for ({wait.value.what})")
    return Present(f"{asks.because}, which {locks.held_by(case)}")


def _holder_cannot_move(case: Case) -> Outcome:
    """Whoever holds the lock can never let go of it by itself: it is stopped, or all it waits for stands as well.

    A holder that only sleeps is no proof: a server whose workers take turns to accept, a leader with a standby and a
    job that waits for its next file all hold a lock for hours. One outside the launch has to be stopped.
    """
    if (handler := timer_of_its_own(case.patient, case.features)) is not None:
        return Unread(handler)
    work = locks.work_of_holders(case)
    if isinstance(work, Missing):
        return Unread(work.detail)
    for end, ticks in work.value:
        if ticks:
            return Unread(f"{end_name(case.features, end)} is at work: it may release the lock when it is done")
    for end in locks.holders_of(case):
        moves = _may_let_go(case, end)
        if moves is not None:
            return Unread(f"{end_name(case.features, end)} may let go of the lock by itself: {moves}")
    return Present("whoever holds the lock can never let go of it: it is stopped, or waits for somebody who stands")


def _may_let_go(case: Case, end: LinkEnd) -> str | None:
    """Say why a holder may go on by itself; None when it cannot."""
    if end.process in case.features.members:
        return may_go_on(case.features, (end.process,), (case.patient.key,), by_order=True)
    return None if end.stopped else "it is outside the launch and only rests; a longer look would tell"


def _culprits(case: Case) -> tuple[Culprit, ...]:
    """Return who has to move: the holders, or whom they wait for themselves."""
    pids = [end.process.pid for end in locks.holders_of(case)]
    threads = who_moves(case.features, pids) or tuple((pid, pid) for pid in sorted(pids))
    what = f"holds up the file lock of {signs.name_of(case.patient.process)}"
    return tuple(culprit_at(case.features, thread, what) for thread in threads)


def _waits(case: Case) -> tuple[Wait, ...]:
    wait = locks.file_lock(case.patient)
    if isinstance(wait, Missing) or wait.value is None:
        return ()
    start = WaitEnd(pid=case.patient.key.pid, tid=wait.value.tid)
    return tuple(
        Wait(from_=start, to=WaitEnd(pid=end.process.pid, tid=None), through="file-lock", detail=wait.value.what)
        for end in locks.holders_of(case)
    )


_LOOK_AT_IT = "Look at the process that holds the lock: let it finish, or end it if an earlier launch left it."


def _action(case: Case) -> str:
    stopped = locks.stopped_holders(case)
    if not stopped:
        return _LOOK_AT_IT
    pids = ", ".join(str(member.key.pid) for member in stopped)
    return f"Let the stopped holder of the lock go on (pid {pids}), after finding out who stopped it."


HYPOTHESIS = Hypothesis(
    id="HD208",
    name="blocked-on-file-lock",
    verdict="blocked",
    suspects=signs.each_mover,
    essential=(
        _waits_for_a_file_lock,
        locks.looks_again_or_sleeps,
        signs.positive_or_patience(_holder_cannot_move),
        signs.nothing_progresses,
        signs.readings_are_steady,
    ),
    supporting=(_waits_for_a_file_lock, _holder_cannot_move),
    excluding=(signs.nobody_died,),
    headline=lambda case: f"{signs.name_of(case.patient.process)} waits for a file lock that {locks.held_by(case)}.",
    culprits=_culprits,
    waits=_waits,
    action=_LOOK_AT_IT,
    action_in=_action,
    playbook="blocked-on-file-lock",
)
