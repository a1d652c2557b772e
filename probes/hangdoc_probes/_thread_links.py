"""Whom one waiting thread waits for: its system call, resolved to processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from msgspec import structs

from hangdoc.memory.image import UnreadableError
from hangdoc.memory.process import ProcessMemory
from hangdoc.model.link import Link, LinkEnd
from hangdoc.model.reading import Known, Missing
from hangdoc.model.thread import SystemCall
from hangdoc.procfs.locks import FileLock
from hangdoc.procfs.status import parse_status
from hangdoc.procfs.syscalls import (
    F_OFD_SETLKW,
    F_SETLKW,
    P_ALL,
    P_PGID,
    P_PIDFD,
    as_int,
    awaits,
    call_of,
    ends_by_itself,
)
from hangdoc.procfs.waitset import Watched
from hangdoc_probes._descriptors import timeout_of
from hangdoc_probes._ends import Far, far_end
from hangdoc_probes._file_locks import holders_of, lease_of, lock_table
from hangdoc_probes._holders import Holders
from hangdoc_probes._neighbours import NAME, Neighbours
from hangdoc_probes._reading import missing, numbered, read, read_table
from hangdoc_probes._wait_sets import MOST_WATCHED, epoll_set, poll_set, select_set

Call: TypeAlias = tuple[int, SystemCall]
"""A thread and what it waits in."""


@dataclass
class Surroundings:
    """What is read once a round, whoever waits."""

    proc: Path
    machine: str
    holders: Holders
    neighbours: Neighbours

    @cached_property
    def locks(self) -> tuple[FileLock, ...]:
        """Every file lock of the host."""
        return lock_table(self.proc)


def links_of(around: Surroundings, pid: int, tid: int, call: SystemCall, io_threads: Sequence[Call]) -> Iterator[Link]:
    """Yield whom a thread waits for. io_threads: the process's zmq threads, through which its sockets speak."""
    kind = awaits(call.number, around.machine)
    match kind:
        case "data" | "room" | "connection":
            yield from _of_descriptor(around, pid, tid, as_int(call.args[0]), "room" if kind == "room" else "data")
        case "poll" | "select" | "epoll":
            yield from _of_set(around, pid, tid, call, io_threads)
        case "child" | "child-by-id":
            yield from _of_children(around, pid, tid, call, kind)
        case "flock" | "fcntl":
            if kind == "flock" or as_int(call.args[1]) in {F_SETLKW, F_OFD_SETLKW}:
                taken = holders_of(around.locks, around.holders, pid, as_int(call.args[0]), kind)
                ends = Known(taken.ends)
                yield Link(tid=tid, through="file-lock", detail=taken.told, ends=ends, weak=not taken.sure)
        case None if call_of(call.number, around.machine) == "open":
            yield from _of_lease(around, pid, tid)


def _of_lease(around: Surroundings, pid: int, tid: int) -> Iterator[Link]:
    patience_s = int(read(f"{around.proc}/sys/fs/lease-break-time"))
    taken = lease_of(around.locks, around.holders, pid, patience_s)
    if taken is not None:
        yield Link(tid=tid, through="lease", detail=taken.told, ends=Known(taken.ends), weak=not taken.sure)


def _of_descriptor(around: Surroundings, pid: int, tid: int, fd: int, wants: str) -> Iterator[Link]:
    far = far_end(around.holders, around.neighbours, pid, fd, wants)
    if far is None:
        return
    if far.through not in {"socket", "tcp"}:
        yield _link(tid, far)
        return
    limit_s = timeout_of(pid, fd, wants)
    if limit_s != Known(0.0):
        far = replace(far, weak=True)  # it looks again by itself, or may
    yield structs.replace(_link(tid, far), timeout_s=limit_s)


def _link(tid: int, far: Far) -> Link:
    return Link(tid=tid, through=far.through, detail=far.detail, ends=far.ends, weak=far.weak)


def _of_set(around: Surroundings, pid: int, tid: int, call: SystemCall, io_threads: Sequence[Call]) -> Iterator[Link]:
    watched = watched_by(around, pid, call)
    if isinstance(watched, Missing):
        yield Link(tid=tid, through="poll", detail="a set of descriptors", ends=watched, weak=True)
        return
    fars = [far_end(around.holders, around.neighbours, pid, one.fd, _wants(one)) for one in watched[:MOST_WATCHED]]
    found = [far for far in fars if far is not None]
    # One of several may end the wait: only when all lead to one process is somebody in particular waited for.
    whom = frozenset[int]().union(*(far.candidates for far in found))
    timed = ends_by_itself(call, around.machine)
    sure = len(found) == len(watched) and len(whom) == 1 and not timed and not any(far.weak for far in found)
    told = f"in a set of {len(watched)}{', with a timeout' if timed else ''}"
    for far in found:
        yield _link(tid, replace(far, weak=not sure, detail=f"{far.detail}, {told}"))
    if any(far.through == "eventfd" for far in found):
        yield from _through_zmq(around, pid, tid, io_threads)


def watched_by(around: Surroundings, pid: int, call: SystemCall) -> tuple[Watched, ...] | Missing:
    """Return the descriptors of a set."""
    memory = ProcessMemory(pid, around.proc)
    try:
        match awaits(call.number, around.machine):
            case "poll":
                return poll_set(memory, call.args)
            case "select":
                return select_set(memory, call.args)
            case _:
                return epoll_set(around.holders, pid, (as_int(call.args[0]),))
    except OSError as error:
        return missing(NAME, error, attach=True)
    except UnreadableError as error:
        return Missing(NAME, "failed", error.message)
    finally:
        memory.close()


def _wants(watched: Watched) -> str:
    return "room" if watched.writing else "data"


def _through_zmq(around: Surroundings, pid: int, tid: int, io_threads: Sequence[Call]) -> Iterator[Link]:
    """A zmq socket is an eventfd to whoever waits for it; its connections are in the sets of the I/O threads.

    Which of a context's sockets a connection belongs to cannot be seen, and an idle server looks the same: weak.
    """
    ends: dict[int, LinkEnd] = {}
    for _, call in io_threads:
        watched = watched_by(around, pid, call)
        for one in () if isinstance(watched, Missing) else watched[:MOST_WATCHED]:
            far = far_end(around.holders, around.neighbours, pid, one.fd, "data")
            if far is not None and far.through in {"socket", "tcp"} and isinstance(far.ends, Known):
                ends.update((end.process.pid, end) for end in far.ends.value if end.process.pid != pid)
    if ends:
        told = f"zmq: the peers of {len(io_threads)} I/O threads"
        yield Link(tid=tid, through="zmq", detail=told, ends=Known(tuple(ends[one] for one in sorted(ends))), weak=True)


def _of_children(around: Surroundings, pid: int, tid: int, call: SystemCall, kind: str) -> Iterator[Link]:
    wanted = _which_children(around, pid, call, kind)
    children = [child for child in _children(around.proc, pid) if wanted(child)]
    ends = tuple(end for child in children if (end := around.holders.end(child)) is not None)
    told = "the end of a child" if len(ends) != 1 else f"the end of its child {ends[0].process.pid}"
    yield Link(tid=tid, through="child", detail=told, ends=Known(ends), weak=len(ends) != 1)


def _which_children(around: Surroundings, pid: int, call: SystemCall, kind: str) -> Callable[[int], bool]:
    """Read the arguments of wait4(pid) and waitid(idtype, id) (wait4(2), waitid(2))."""
    number = as_int(call.args[0] if kind == "child" else call.args[1])
    how = as_int(call.args[0])
    if kind == "child-by-id" and how == P_PIDFD:
        far = far_end(around.holders, around.neighbours, pid, number, "data")
        named = far.candidates if far is not None else frozenset()
        return lambda child: child in named
    if number in {-1, 0} if kind == "child" else how == P_ALL:
        return lambda _: True
    if number < 0 or (kind == "child-by-id" and how == P_PGID):
        group = abs(number)
        return lambda child: (line := around.holders.stat(child)) is not None and line.process_group == group
    return lambda child: _number_within(around.proc, child) == number


def _number_within(proc: Path, pid: int) -> int:
    """Return a process's number as its own parent in its namespace calls it."""
    try:
        return parse_status(read(f"{proc}/{pid}/status")).namespace_pids[-1]
    except OSError:
        return 0


def _children(proc: Path, pid: int) -> list[int]:
    found: set[int] = set()
    for tid in numbered(f"{proc}/{pid}/task"):
        try:
            found |= set(map(int, read_table(f"{proc}/{pid}/task/{tid}/children").split()))
        except (FileNotFoundError, ProcessLookupError):
            continue  # the thread has ended
    return sorted(found)
