"""HD208: a rank waits for a file lock that a living process holds, of the launch or outside it."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import waiting
from hangdoc.hypotheses import _file_locks as locks
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._chains import culprit_at, end_name, who_moves
from hangdoc.hypotheses.blocked_in_host_collective import LONG_SLEEP_S
from hangdoc.model.diagnosis import Culprit, Wait, WaitEnd
from hangdoc.model.link import LinkEnd
from hangdoc.model.reading import Known, Missing


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


def _holder_stands_still(case: Case) -> Outcome:
    """Whoever holds the lock, and all its children, used no CPU between two readings some seconds apart.

    Fails for a holder that only waits for a slow disk or network: it may still be on its way.
    """
    work = locks.work_of_holders(case)
    if isinstance(work, Missing):
        return Unread(work.detail)
    for end, ticks in work.value:
        if ticks:
            name = end_name(case.features, end)
            return Unread(f"{name} is at work: it may release the lock when it is done")
        if _goes_on_by_itself(case, end):
            return Unread(f"{end_name(case.features, end)} sleeps, or may do so, and may go on when it wakes")
    return Present("whoever holds the lock used no CPU, and none of its children did")


def _goes_on_by_itself(case: Case, end: LinkEnd) -> bool:
    """Tell whether a holder sleeps for a while; of one outside, whether any thread of it may go on by itself.

    A server that is known does not wait its turn: whoever holds up its start is worth looking at.
    """
    holder = case.features.members.get(end.process)
    if holder is None:
        stands = end.stopped or end.rests is False or signs.is_server(case.features)
        return not stands
    wait = waiting(holder, holder.key.pid)
    if not isinstance(wait, Known) or wait.value is None:
        return False
    return wait.value.call == "sleep" and (wait.value.sleep_left_s or 0.0) <= LONG_SLEEP_S


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
        signs.positive_or_patience(_holder_stands_still),
        signs.nothing_progresses,
        signs.readings_are_steady,
    ),
    supporting=(_waits_for_a_file_lock, _holder_stands_still),
    excluding=(signs.nobody_died,),
    headline=lambda case: f"{signs.name_of(case.patient.process)} waits for a file lock that {locks.held_by(case)}.",
    culprits=_culprits,
    waits=_waits,
    action=_LOOK_AT_IT,
    action_in=_action,
    playbook="blocked-on-file-lock",
)
