"""HD201: a rank waits for a lock whose holder is dead, or that no thread of its process is left to release."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import Waiting, waiting
from hangdoc.features.edges import Edge
from hangdoc.features.features import Member
from hangdoc.features.launch_waits import joins_a_thread, standing_lock_edges, unread_locks, worker_tids
from hangdoc.features.links import STANDING_READINGS
from hangdoc.features.waits import ENDED, Thread, leads_to, starts_at
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._chains import culprit_at, edges_behind, ends_behind, inferred_among, member_of, thread_of
from hangdoc.hypotheses._waits import (
    ORDERS,
    handler_of,
    idle_is_known,
    is_native,
    nobody_left_to_release,
    place,
    waits_for_others,
    worker_threads,
)
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.locks import LockKind
from hangdoc.model.reading import Known, Missing, Reading

GIL = "gil"


def _stuck(case: Case) -> Reading[Waiting | None]:
    """Return a worker thread that sat in a futex in every round: one whose lock has a known holder before others.

    A lock whose holder is dead needs no stack to tell what the thread is.
    """
    orphaned = _orphaned(case)
    if orphaned is not None:
        return Known(orphaned)
    threads = _threads(case.patient)
    if isinstance(threads, Missing):
        return threads
    held = set(_held(case))
    found: list[Waiting] = []
    unread: Missing | None = None
    for tid in threads.value:
        wait = waiting(case.patient, tid)
        if isinstance(wait, Missing):
            unread = wait
        elif wait.value is not None and wait.value.call == "futex":
            found.append(wait.value)
    return (
        Known(min(found, key=lambda wait: not (wait.untimed and wait.tid in held))) if found else unread or Known(None)
    )


def _orphaned(case: Case) -> Waiting | None:
    """Return the main thread, or another worker, if it waits for a lock whose holder is dead."""
    held = _held(case)
    dead = [tid for tid, edge in held.items() if edge.ended]
    for tid in sorted(dead, key=lambda tid: (tid != case.patient.key.pid, tid)):
        wait = waiting(case.patient, tid)
        if isinstance(wait, Known) and wait.value is not None and wait.value.call == "futex" and wait.value.untimed:
            return wait.value
    return None


def _waits_for_others(case: Case) -> Outcome:
    """Excluding: its main thread waits for other ranks, unless it is known to wait for a lock whose holder is dead."""
    orphaned = _orphaned(case)
    if orphaned is not None and orphaned.tid == case.patient.key.pid:
        return Absent(f"nobody else can end the wait of thread {orphaned.tid}: the holder of its lock is dead")
    return waits_for_others(case)


def _threads(member: Member) -> Reading[tuple[int, ...]]:
    """Return the threads whose waits say something, the main one first: of a process without Python, all of them."""
    if not is_native(member):
        workers = worker_threads(member)
        return workers if isinstance(workers, Missing) else Known(tuple(thread.tid for thread in workers.value))
    clocks = member.clocks
    if isinstance(clocks, Missing):
        return clocks
    return Known(tuple(sorted(clocks.value, key=lambda tid: (tid != member.key.pid, tid))))


def _held(case: Case) -> dict[int, Edge]:
    """Return the waits of the suspect's threads for locks whose holder is known, by thread; a join is for no lock.

    A dead holder proves nothing for a thread that may be a helper: the process can go on without it.
    """
    pid = case.patient.key.pid
    edges = {
        starts_at(edge)[1]: edge
        for edge in standing_lock_edges(case.features)
        if edge.from_pid == pid and edge.through != GIL
    }
    workers = worker_tids(case.patient)
    return {
        tid: edge
        for tid, edge in edges.items()
        if not joins_a_thread(case.patient, tid) and (tid in workers or not edge.ended)
    }


def _holder(case: Case) -> Edge | None:
    stuck = _stuck(case)
    return _held(case).get(stuck.value.tid) if isinstance(stuck, Known) and stuck.value is not None else None


def _sits_in_a_futex(case: Case) -> Outcome:
    """A working thread of it waited for a lock (futex) all the time."""
    stuck, name = _stuck(case), signs.name_of(case.patient.process)
    if isinstance(stuck, Missing):
        return Unread.of(stuck, f"what {name} waits in")
    if stuck.value is None:
        return Absent(f"no thread of {name} waits for a lock (futex)")
    tid = stuck.value.tid
    told = _told_of_owner(case, tid)
    return Present(f"thread {tid} of {name} waits for a lock (futex): {place(case.patient, tid)}{told}")


def _told_of_owner(case: Case, tid: int) -> str:
    """Return the end of a sentence that says that what a thread waits for is of a kind that records no owner."""
    if tid in _held(case) or isinstance(case.patient.locks, Missing):
        return ""
    newest = case.patient.locks.value[-1:]
    waits = [wait for _, locks in newest for wait in locks.futexes if wait.tid == tid]
    kinds = [OWNERLESS[wait.kind] for wait in waits if wait.owner_tid == Known(None) and wait.kind in OWNERLESS]
    return f" ({kinds[0]}: no owner is recorded)" if kinds else ""


OWNERLESS: dict[LockKind, str] = {
    "condition": "a condition",
    "semaphore": "a semaphore",
    "barrier": "a barrier",
    "rwlock": "a lock that readers hold",
}
"""Kinds that keep no owner (glibc's struct pthread_cond_t, sem_t, pthread_barrier_t; a rwlock only counts its readers).
CPython's own locks are semaphores."""


def _without_timeout(case: Case) -> Outcome:
    """The wait has no timeout: only somebody else can end it."""
    stuck = _stuck(case)
    if isinstance(stuck, Missing):
        return Unread.of(stuck, "the arguments of the wait")
    if stuck.value is None:
        return Absent("nobody waits in a futex")
    if stuck.value.untimed:
        return Present("the wait has no timeout")
    return Absent("the wait has a timeout: it will look again by itself")


def _nobody_will_release(case: Case) -> Outcome:
    """The lock's holder ended without releasing it, or no thread of the process is left that could release it.

    Rule: a holder that is alive may release the lock, so that it proves something only if every other thread that
    could make it move waits as well. Fails as the reading of owners fails: for a lock that a Python thread releases
    which did not take it.
    """
    unread = unread_locks(case.patient)
    if unread is not None:
        return Unread.of(unread, f"who holds the lock that {signs.name_of(case.patient.process)} waits for")
    edge = _holder(case)
    if edge is None:
        return _unless_a_handler_does(case, nobody_left_to_release(case))
    if edge.ended:
        return Present(edge.detail)
    left = nobody_left_to_release(case)
    sentence = f"{_holder_stands(case, edge)}; {left.because}"
    return Present(sentence) if isinstance(left, Present) and not _runs(case, edge) else Unread(sentence)


def _unless_a_handler_does(case: Case, left: Outcome) -> Outcome:
    """Leave it open where a program of no known engine handles signals: one that waits for them may wait like this."""
    number = None if idle_is_known(case.features) else handler_of(case.patient, ORDERS)
    if number is None or not isinstance(left, Present):
        return left
    return Unread(f"a handler of {signs.name_of(case.patient.process)} for signal {number} might still release it")


def _holder_stands(case: Case, edge: Edge) -> str:
    pid, tid = leads_to(edge)
    owner = member_of(case.features, pid)
    where = "" if owner is None else f" and {'runs' if _runs(case, edge) else 'stands'} in {place(owner, tid)}"
    return f"{thread_of(case.features, (pid, tid))} holds it{where}"


def _runs(case: Case, edge: Edge) -> bool:
    """Tell whether the holder ran, or was not seen to stand still."""
    pid, tid = leads_to(edge)
    owner = member_of(case.features, pid)
    return owner is None or not _is_still(owner, tid)


def _is_still(member: Member, tid: int) -> bool:
    clocks = member.clocks
    return isinstance(clocks, Known) and tid in clocks.value and clocks.value[tid].is_still


def _holder_is_named(case: Case) -> Outcome:
    """Supporting: who held the lock, or that its holder is dead, was read from memory."""
    edge = _holder(case)
    if edge is None:
        return Absent("who holds the lock is not known")
    return Present(edge.detail if edge.ended else _holder_stands(case, edge))


def _holder_is_uncertain(case: Case) -> Outcome:
    """Contrary: that somebody holds the lock is likely and not proven, or what the holder itself waits for is unknown.

    Why: a lock tells who holds it, or only that it is held; and a holder that waits for a lock of the second kind may
    be waiting for anybody.
    """
    stuck, name = _stuck(case), signs.name_of(case.patient.process)
    if isinstance(stuck, Missing) or stuck.value is None:
        return Absent("nobody waits for a lock")
    if (unread := _python_locks_unread(case.patient)) is not None:
        return Unread.of(unread, f"who holds the Python locks of {name}")
    start = (case.patient.key.pid, stuck.value.tid)
    inferred = inferred_among(edges_behind(case.features, start))
    if inferred is not None:
        return Present(inferred)
    edge = _holder(case)
    if edge is None:
        return Absent("no holder is named")
    waits = [_own_wait(case, end) for end in _ends(case, start, edge)]
    unsure = [one for one in waits if one is not None]
    return unsure[0] if unsure else Absent("what the holder does is known")


def _python_locks_unread(member: Member) -> Missing | None:
    if isinstance(member.locks, Missing):
        return member.locks
    last = [locks.python for _, locks in member.locks.value[-STANDING_READINGS:]]
    return next((one for one in last if isinstance(one, Missing)), None)


def _own_wait(case: Case, end: Thread) -> Present | Unread | None:
    """Look whether the end of a chain of waits waits for a lock too, whose holder is not known."""
    pid, tid = end
    member = member_of(case.features, pid)
    if member is None or tid == ENDED:
        return None
    wait, name = waiting(member, tid), thread_of(case.features, end)
    if isinstance(wait, Missing):
        return Unread.of(wait, f"what {name} waits in")
    if wait.value is None or wait.value.call != "futex":
        return None
    return Present(f"{name} waits itself for a lock, and who holds that is not known")


def _ends(case: Case, start: Thread, edge: Edge) -> tuple[Thread, ...]:
    return ends_behind(case.features, start) or (leads_to(edge),)


def _culprits(case: Case) -> tuple[Culprit, ...]:
    """Return who has to move: the holder of the lock, or the end of its own chain; the waiter when none is known."""
    stuck = _stuck(case)
    if isinstance(stuck, Missing) or stuck.value is None:
        return ()
    tid = stuck.value.tid
    edge = _holder(case)
    if edge is None:
        return (signs.culprit(case.patient, f"waits for a lock in {place(case.patient, tid)}", tid),)
    ends = _ends(case, (case.patient.key.pid, tid), edge)
    what = "holds up the lock"
    return tuple(culprit_at(case.features, end, what) for end in ends)


def _headline(case: Case) -> str:
    stuck, name = _stuck(case), signs.name_of(case.patient.process)
    tid = stuck.value.tid if isinstance(stuck, Known) and stuck.value is not None else case.patient.key.pid
    edge = _holder(case)
    if edge is None:
        return f"{name} waits for a lock nobody will release, in {place(case.patient, tid)}."
    if edge.ended:
        return f"{name} waits for a lock whose holder is dead, in {place(case.patient, tid)}."
    return f"{name} waits for a lock in {place(case.patient, tid)}; {_holder_stands(case, edge)}."


HYPOTHESIS = Hypothesis(
    id="HD201",
    name="blocked-on-lock",
    verdict="blocked",
    suspects=signs.each_mover,
    essential=(
        _sits_in_a_futex,
        _without_timeout,
        signs.does("still"),
        signs.nothing_progresses,
        signs.positive_or_patience(_nobody_will_release),
        signs.readings_are_steady,
    ),
    supporting=(_nobody_will_release, _holder_is_named, signs.log_is_silent_too_long),
    contrary=(_holder_is_uncertain,),
    excluding=(_waits_for_others, signs.nobody_died),
    headline=_headline,
    culprits=_culprits,
    action="Find who should have released the lock in the frames above; end this launch.",
    playbook="blocked-on-lock",
)
