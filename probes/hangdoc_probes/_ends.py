"""Who is at the other end of a descriptor on which a thread waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hangdoc.model.link import LinkEnd, Through
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.procfs.sockdiag import UnixSocket
from hangdoc.procfs.tcp import TcpSocket
from hangdoc.procfs.waitset import parse_labelled
from hangdoc_probes._holders import Held, Holders
from hangdoc_probes._neighbours import NAME, Neighbours

UNSEARCHED = Missing(NAME, "failed", "there are more open files than are looked at")
"""Who else holds an end, where not all could be asked."""


@dataclass(frozen=True, slots=True)
class Far:
    """The other end of one descriptor.

    weak: nobody in particular is waited for, or the wait looks the same when nothing is wrong.
    """

    through: Through
    ends: Reading[tuple[LinkEnd, ...]]
    detail: str
    weak: bool

    @property
    def candidates(self) -> frozenset[int]:
        """The processes that could end the wait and did not just inherit the end."""
        if not isinstance(self.ends, Known):
            return frozenset()
        return frozenset(end.process.pid for end in self.ends.value if not end.inherited)


def far_end(holders: Holders, neighbours: Neighbours, pid: int, fd: int, wants: str) -> Far | None:
    """Return who could end a wait on a descriptor; None for one that nobody's process ends (a file, a timer)."""
    target = holders.files(pid).get(fd, "")
    if target.startswith("socket:["):
        return _socket(holders, neighbours, pid, fd, int(target[8:-1]))
    if target.startswith("pipe:[") or (target.startswith("/") and holders.identity(pid, fd)[1]):
        return _pipe(holders, pid, fd, target, wants)
    if target == "anon_inode:[eventfd]":
        return _eventfd(holders, pid, fd)
    if target == "anon_inode:[pidfd]" or target.startswith("pidfd:["):
        return _pidfd(holders, pid, fd)
    return None


def _pipe(holders: Holders, pid: int, fd: int, target: str, wants: str) -> Far:
    held = holders.of(target)
    writers, readers = [one for one in held if one.writes], [one for one in held if one.reads]
    wanted, unwanted = (writers, readers) if wants == "data" else (readers, writers)
    ends = _ranked(holders, pid, wanted, unwanted)
    side = "write" if wants == "data" else "read"
    kind = "pipe" if target.startswith("pipe:") else "FIFO"
    told = f"{kind} on descriptor {fd}"
    if all(end.process.pid == pid for end in ends):
        whom = "only the process itself" if ends else "nobody who can be seen"
        told += f": {whom} holds the {side} end"
    elif any(end.process.pid == pid for end in ends):
        told += f"; the process itself also holds the {side} end"
    return Far("pipe", Known(ends), told, _is_unsure(holders, ends))


def _socket(holders: Holders, neighbours: Neighbours, pid: int, fd: int, inode: int) -> Far | None:
    unix = neighbours.unix(pid)
    if isinstance(unix, Known) and inode in unix.value:
        return _unix(holders, pid, fd, unix.value[inode], unix.value)
    tcp = neighbours.tcp(pid)
    own = next((one for one in tcp.value if one.inode == inode), None) if isinstance(tcp, Known) else None
    if own is not None:
        return _tcp(holders, neighbours, pid, fd, own)
    unread = next((found for found in (unix, tcp) if not isinstance(found, Known)), None)
    return None if unread is None else Far("socket", unread, f"socket on descriptor {fd}", weak=True)


def _unix(holders: Holders, pid: int, fd: int, own: UnixSocket, every: Mapping[int, UnixSocket]) -> Far:
    told = f"unix socket on descriptor {fd}"
    if own.listens:
        return Far("socket", Known(()), f"{told}: waits for a connection", weak=True)
    theirs, ours = holders.of(f"socket:[{own.peer}]") if own.peer else [], holders.of(f"socket:[{own.inode}]")
    if not theirs and (listener := _listener(own, every)) is not None:
        theirs, told = holders.of(f"socket:[{listener}]"), f"{told}, which nobody has accepted yet"
    ends = _ranked(holders, pid, theirs, ours)
    if not ends:
        told += ": nobody who can be seen holds the other end"
    return Far("socket", Known(ends), told, own.bound or _is_unsure(holders, ends))


def _listener(own: UnixSocket, every: Mapping[int, UnixSocket]) -> int | None:
    """Find whose accept a connection waits for."""
    return next((one.inode for one in every.values() if own.inode in one.pending), None)


def _tcp(holders: Holders, neighbours: Neighbours, pid: int, fd: int, own: TcpSocket) -> Far:
    told = f"TCP on descriptor {fd}, port {own.local_port}"
    if own.listens:
        return Far("tcp", Known(()), f"{told}: waits for a connection", weak=True)
    peer = neighbours.other_end(pid, own)
    if peer is None:
        return Far("tcp", Known(()), f"{told}: the other end is not on this host", weak=True)
    told += f" to port {peer.local_port}" + (", which nobody has accepted yet" if peer.listens else "")
    theirs, ours = holders.of(f"socket:[{peer.inode}]"), holders.of(f"socket:[{own.inode}]")
    ends = _ranked(holders, pid, theirs, ours)
    serves = neighbours.is_served(pid, own)
    return Far("tcp", Known(ends), told, serves or _is_unsure(holders, ends))


def _eventfd(holders: Holders, pid: int, fd: int) -> Far:
    """Find who shares an eventfd. Whoever waits holds it, too, and a thread of its own may be meant: always weak."""
    identity = parse_labelled(holders.info(pid, fd), b"eventfd-id")
    shared = [] if identity is None else holders.of_eventfd(identity)
    own = next((one for one in shared if one.pid == pid), Held(pid, fd, reads=True, writes=True))
    others = [one for one in shared if one.pid != pid]
    ends = [end for one in _first_of_each(others) if (end := holders.end(one.pid, one.fd)) is not None]
    if not ends and not holders.complete:
        return Far("eventfd", UNSEARCHED, f"eventfd on descriptor {fd}", weak=True)
    mine = holders.end(pid, own.fd, inherited=bool(ends))
    alone = "" if ends else ": only the process itself holds it"
    return Far("eventfd", Known((*ends, *([mine] if mine else []))), f"eventfd on descriptor {fd}{alone}", weak=True)


def _pidfd(holders: Holders, pid: int, fd: int) -> Far | None:
    child = parse_labelled(holders.info(pid, fd), b"Pid")
    end = holders.end(child) if child else None
    return None if end is None else Far("child", Known((end,)), f"the end of pid {child}", weak=False)


def _ranked(holders: Holders, pid: int, wanted: Sequence[Held], unwanted: Iterable[Held]) -> tuple[LinkEnd, ...]:
    """Return whoever holds the wanted end, who inherited it last.

    Rule: a process that holds the other direction as well has both only because a fork copied them: who uses a pipe
    closes what it does not use. Fails for a program that closes nothing: then all its children count alike, and the
    edge is weak.
    """
    both = {one.pid for one in unwanted}
    ends = [
        end
        for one in _first_of_each(wanted)
        if (end := holders.end(one.pid, one.fd, inherited=one.pid in both)) is not None
    ]
    # The waiting process itself comes last of all, and parents before the children that have a copy of theirs.
    parents = {end.process.pid: (line.ppid if (line := holders.stat(end.process.pid)) else 0) for end in ends}
    return tuple(
        sorted(
            ends,
            key=lambda end: (
                end.process.pid == pid,
                end.inherited,
                parents[end.process.pid] in parents,
                end.process,
            ),
        )
    )


def _first_of_each(held: Iterable[Held]) -> list[Held]:
    first: dict[int, Held] = {}
    for one in held:
        first.setdefault(one.pid, one)
    return list(first.values())


def _is_unsure(holders: Holders, ends: Sequence[LinkEnd]) -> bool:
    return not holders.complete or sum(not end.inherited for end in ends) != 1
