"""Who could end each wait that leaves its process: the other end of a descriptor, a child, the holder of a file lock.

A thorough round costs some 20 us for each descriptor on the host that may be looked at, read once, and only when a
thread waits for a pipe or socket; a unix dump 0.2 ms; the TCP tables 10 ms, read only when one waits on TCP. Ordinary
rounds read the totals of the TCP connections that the last thorough one found. Nothing of it stops the target.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from pathlib import Path

from hangdoc.model.link import Link, Links, SocketFlow
from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Payload, Sample
from hangdoc.model.thread import SystemCall
from hangdoc.procfs.stat import split_stat
from hangdoc.procfs.wait import parse_system_call
from hangdoc.sampling.probe import Context, Probe, Round, Session
from hangdoc_probes._causes import causes
from hangdoc_probes._holders import Holders
from hangdoc_probes._neighbours import NAME, Neighbours
from hangdoc_probes._reading import missing, read, samples
from hangdoc_probes._thread_links import Call, Surroundings, links_of
from hangdoc_probes._threads import threads

MOST_LINKS = 256
"""Links of one process that are kept, those of its main thread first; arbitrary."""

ZMQ_IO_THREAD = b"ZMQbg/IO/"
"""How libzmq names the threads that its sockets speak through (src/thread.cpp)."""

ASLEEP = b"S"
"""State of whoever waits for another process. D waits for a device or a file server, and to ask about its descriptors
could take as long."""


class LinksSession:
    """Remembers which TCP connections a process has."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._connections: dict[ProcessKey, dict[int, int]] = {}
        self._around = self._surroundings(())

    def take(self, now: Round) -> Iterable[Sample]:
        """Read the links of every process in a thorough round, TCP totals in every one."""
        self._around = self._surroundings(tuple(process.key for process in now.processes))
        present = {process.key for process in now.processes}
        self._connections = {key: known for key, known in self._connections.items() if key in present}
        try:
            yield from samples(NAME, now, lambda process: self._take_process(now, process))
        finally:
            self._around.neighbours.close()

    def close(self) -> None:
        """Nothing is held."""

    def _surroundings(self, members: tuple[ProcessKey, ...]) -> Surroundings:
        neighbours = Neighbours(self._proc, [key.pid for key in members])
        return Surroundings(self._proc, platform.machine(), Holders(self._proc, members), neighbours)

    def _take_process(self, now: Round, process: Process) -> Reading[Payload]:
        line = self._around.holders.stat(process.key.pid)
        if line is None or line.state in "ZX":
            return Missing(NAME, "gone", "the process has ended")
        if not now.thorough:
            return Known(Links(links=(), tcp=self._totals(process.key), thorough=False))
        found, unread = self._links(now, process.key.pid)
        return Known(Links(links=tuple(found[:MOST_LINKS]), tcp=self._flows(process.key), unread=unread))

    def _links(self, now: Round, pid: int) -> tuple[list[Link], Missing | None]:
        found = list(causes(self._proc, self._around.holders, pid))
        if found:
            return found, None  # whatever its threads wait in, they would not go on if it ended
        try:
            calls, io_threads = self._calls(now, pid)
            for tid, call in calls:
                found += self._links_of(pid, tid, call, io_threads)
        except PermissionError as error:
            return found, missing(NAME, error, attach=True)
        return found, None

    def _links_of(self, pid: int, tid: int, call: SystemCall, io_threads: list[Call]) -> list[Link]:
        try:
            return list(links_of(self._around, pid, tid, call, io_threads))
        except (FileNotFoundError, ProcessLookupError):
            return []  # the descriptor was closed, or somebody ended, in this moment

    def _calls(self, now: Round, pid: int) -> tuple[list[Call], list[Call]]:
        """Return what the threads of a process wait in: all, main thread first; and those of zmq."""
        seen = threads(now, self._proc, pid)
        if seen.denied is not None:
            raise seen.denied
        every: list[Call] = []
        io_threads: list[Call] = []
        for tid, stat in seen.stats.items():
            line = seen.calls[tid]
            if not stat or not line:
                continue  # it ended in this round
            _, name, fields = split_stat(stat)
            call = parse_system_call(line) if fields[0] in ASLEEP else None
            if call is None or call.number < 0:
                continue
            (io_threads if name.startswith(ZMQ_IO_THREAD) else every).append((tid, call))
        return every, io_threads

    def _flows(self, key: ProcessKey) -> Reading[tuple[SocketFlow, ...]]:
        try:
            files = self._around.holders.files(key.pid)
        except OSError as error:
            return missing(NAME, error)
        sockets = {int(target[8:-1]): fd for fd, target in sorted(files.items()) if target.startswith("socket:[")}
        self._connections[key] = sockets
        return self._totals(key)

    def _totals(self, key: ProcessKey) -> Reading[tuple[SocketFlow, ...]]:
        """Return the totals of the connections known of a process; without any there is nothing to ask for."""
        known = self._connections.get(key)
        if known is None:
            return self._flows(key)  # it was not there, or not reached, in the last thorough round
        if not known:
            return Known(())
        totals = self._around.neighbours.totals(key.pid)
        if isinstance(totals, Missing):
            return totals
        connected = {inode: fd for inode, fd in known.items() if inode in totals.value}
        self._connections[key] = connected
        flows = [
            SocketFlow(fd, moved.received_bytes, moved.acked_bytes, moved.segments)
            for fd, moved in ((fd, totals.value[inode]) for inode, fd in connected.items())
        ]
        return Known(tuple(sorted(flows, key=lambda flow: flow.fd)))


def open_session(context: Context) -> Session:
    """Start reading a launch."""
    return LinksSession(context.proc)


def check(proc: Path) -> Reading[str]:
    """Say whether waits can be followed beyond their process here."""
    try:
        read(f"{proc}/self/syscall")
        read(f"{proc}/locks")
        neighbours = Neighbours(proc, ())
        unix = neighbours.unix(os.getpid())
        neighbours.close()
    except OSError as error:
        return missing(NAME, error, attach=True)
    return (
        unix if isinstance(unix, Missing) else Known("other ends of pipes and sockets, children, file locks, TCP bytes")
    )


PROBE = Probe(
    name=NAME,
    title="who could end each wait: other ends of pipes and sockets, children, file locks",
    open=open_session,
    check=check,
    deadline_s=2.0,
    allowance_s=2.0,
    reads=(
        "/proc/PID/task/TID/syscall",
        "/proc/PID/task/TID/children",
        "/proc/*/fd",
        "/proc/PID/fdinfo",
        "/proc/PID/net/tcp",
        "/proc/PID/net/tcp6",
        "/proc/PID/cgroup",
        "/proc/locks",
        "/proc/sys/fs/lease-break-time",
    ),
)
