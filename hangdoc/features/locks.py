"""Who waits for whom because of locks: edges that stood over a window, and a starved interpreter lock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from hangdoc.features.edges import Edge
from hangdoc.features.index import Index, Window
from hangdoc.model.locks import FutexWait, Gil, LockKind, Locks, PythonLock
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known, Reading

T = TypeVar("T")

PROBE = "locks"

TimedLocks: TypeAlias = tuple[int, Locks]
"""A reading and when it was taken."""

NAMES: dict[LockKind, str] = {
    "mutex": "mutex",
    "pi-mutex": "priority-inheriting mutex",
    "robust-mutex": "robust mutex",
    "rwlock": "write lock",
}


def recent_locks(index: Index, process: ProcessKey, window: Window) -> Reading[tuple[TimedLocks, ...]]:
    """Return the readings of a process's locks so far, oldest first; the newest is of the window.

    Known to be none at all in a trace that is older than the probe: what it would say is judged as it was then.
    """
    if not index.was_taken(PROBE):
        return Known(())
    readings = index.known(PROBE, process, Locks, Window(0, window.last, 0, window.end_ns))
    if not readings or readings[-1][0] < window.start_ns:
        return index.missing(PROBE, process, window)
    return Known(tuple(readings))


def lock_edges(readings: Mapping[int, Sequence[Locks]]) -> tuple[Edge, ...]:
    """Return the waits for locks that stood in every reading of a window; readings: by pid, in their order.

    Rule: the same thread waits at the same address for the same owner each time. One reading shows one moment, in
    which a lock that works is now and then waited for too: with a single reading every edge is weak, and one to the
    holder of the interpreter lock is weak unless that never changed hands.
    """
    found: list[Edge] = []
    for pid, locks in sorted(readings.items()):
        if locks:
            found += _edges(pid, locks)
    return tuple(found)


def _edges(pid: int, locks: Sequence[Locks]) -> Iterator[Edge]:
    weak = len(locks) < 2
    for wait in _steady([{_futex_identity(one): one for one in read.futexes} for read in locks]):
        if wait.kind != "gil":
            yield from _futex_edge(pid, wait, weak=weak)
    for held in _steady([{_python_identity(one): one for one in _python(read)} for read in locks]):
        yield _python_edge(pid, held, weak=weak)
    yield from _gil_edges(pid, [_gil(read) for read in locks])


def _steady(readings: Sequence[Mapping[object, T]]) -> Iterator[T]:
    """Yield the records of the last reading that are in all others too."""
    for identity, record in readings[-1].items():
        if all(identity in read for read in readings):
            yield record


def _futex_identity(wait: FutexWait) -> object:
    return wait.tid, wait.address, wait.shared_key, wait.owner_tid


def _python_identity(lock: PythonLock) -> object:
    return lock


def _python(locks: Locks) -> tuple[PythonLock, ...]:
    return locks.python.value if isinstance(locks.python, Known) else ()


def _gil(locks: Locks) -> Gil | None:
    return locks.gil.value if isinstance(locks.gil, Known) else None


def _futex_edge(pid: int, wait: FutexWait, *, weak: bool) -> Iterator[Edge]:
    if not isinstance(wait.owner_tid, Known) or wait.owner_tid.value is None:
        return
    owner, where = wait.owner_tid.value, wait.owner_pid or pid
    if wait.kind == "join":
        yield Edge(pid, wait.tid, where, owner, "futex", f"thread {wait.tid} waits for thread {owner} to end", weak)
        return
    lock = f"the {NAMES.get(wait.kind, 'lock')} at {wait.address:#x}"
    if not wait.owner_alive:
        detail = f"thread {wait.tid} waits for {lock}, held by thread {owner}, {_end_of_owner(wait)}"
        yield Edge(pid, wait.tid, where, None, "futex", detail, weak, ended=True)
        return
    holder = "itself" if (where, owner) == (pid, wait.tid) else f"thread {owner}"
    other = f" of process {where}" if where != pid else ""
    yield Edge(
        pid, wait.tid, where, owner, "futex", f"thread {wait.tid} waits for {lock}, held by {holder}{other}", weak
    )


def _end_of_owner(wait: FutexWait) -> str:
    """Say what is known of an owner that is not there; a fork copies a lock, and not the threads that hold it."""
    if wait.shared_key:
        return "which is in no process any more: it ended without releasing it"
    return "which this process does not have: it ended without releasing it, or held it when the process was forked"


def _python_edge(pid: int, lock: PythonLock, *, weak: bool) -> Edge:
    what = "RLock" if lock.through == "rlock" else "Lock"
    begin = f"thread {lock.waiting_tid} waits for the Python {what} at {lock.address:#x}"
    if lock.holder_tid is None:
        end = "whose holder this process does not have: it ended without releasing it, or held it at a fork"
    elif lock.holder_tid == lock.waiting_tid:
        end = f"which it {'most likely ' if lock.through == 'with' else ''}holds itself"
    else:
        likely = "most likely " if lock.through == "with" or not lock.sure else ""
        end = f"{likely}held by thread {lock.holder_tid}"
        end += " inside a with block" if lock.through == "with" else ""
    ended = lock.holder_tid is None
    inferred = lock.through == "with" or not lock.sure
    detail = f"{begin}, {end}"
    return Edge(pid, lock.waiting_tid, pid, lock.holder_tid, "python-lock", detail, weak, ended, inferred)


def _gil_edges(pid: int, gils: Sequence[Gil | None]) -> Iterator[Edge]:
    last = gils[-1]
    if last is None or last.holder_tid is None:
        return
    stood = len(gils) > 1 and all(_same_hold(last, gil) for gil in gils)
    # Who asked at any of these moments has not got it since; on a full machine it may just not be asleep now.
    asked = {tid for gil in gils if gil is not None for tid in gil.waiting_tids} if stood else last.waiting_tids
    for tid in sorted(asked):
        detail = f"thread {tid} waits for the interpreter lock (GIL), held by thread {last.holder_tid}"
        yield Edge(pid, tid, pid, last.holder_tid, "gil", detail, weak=not stood)


def _same_hold(last: Gil, gil: Gil | None) -> bool:
    return gil is not None and gil.locked and (gil.holder_tid, gil.switches) == (last.holder_tid, last.switches)


@dataclass(frozen=True)
class Starvation:
    """An interpreter lock that one thread keeps. waiting: most that were seen to wait; held_s: at least so long."""

    pid: int
    holder_tid: int
    waiting: int
    held_s: float

    def sentence(self, frame: str = "") -> str:
        """Say it. frame: where the holder is, when that is known.

        >>> Starvation(pid=1, holder_tid=7, waiting=40, held_s=5.02).sentence("sleep (gilhog.c)")
        '40 threads wait for the GIL, held by TID 7 in sleep (gilhog.c) for at least 5.0 s'
        """
        threads = "1 thread waits" if self.waiting == 1 else f"{self.waiting} threads wait"
        where = f" in {frame}" if frame else ""
        return f"{threads} for the GIL, held by TID {self.holder_tid}{where} for at least {self.held_s:.1f} s"


def gil_starvation(pid: int, readings: Sequence[tuple[int, Locks]]) -> Starvation | None:
    """Return who keeps the interpreter lock from threads that want it; readings: (taken_ns, Locks), in their order.

    Rule: somebody waited for the lock at one reading, and up to the last one its count of switches stood, so that it
    was not given away in between. Why not at the last one: who waits wakes every 5 ms to ask again, and on a full
    machine is seldom seen asleep. It fails when nothing else wants to run, which is no illness.
    """
    if not readings or (last := _gil(readings[-1][1])) is None or last.holder_tid is None:
        return None
    end_ns = since_ns = readings[-1][0]
    waiting = 0
    for taken_ns, locks in reversed(readings):
        gil = _gil(locks)
        if gil is None or not _same_hold(last, gil):
            break
        if gil.waiting_tids:
            since_ns, waiting = taken_ns, max(waiting, len(gil.waiting_tids))
    held_s = (end_ns - since_ns) / 1e9
    return Starvation(pid, last.holder_tid, waiting, held_s) if held_s > 0 else None
