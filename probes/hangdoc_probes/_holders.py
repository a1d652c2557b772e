"""Who holds which kernel object: the descriptors of every process that may be looked at, in the launch and outside.

Somebody else's processes cannot be looked at without rights; they are taken not to hold an end of this launch's pipes
and sockets. That fails for a launch whose other end belongs to another user.
"""

from __future__ import annotations

import os
import platform
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hangdoc.launch.table import listed_pids
from hangdoc.model.link import LinkEnd
from hangdoc.model.process import ProcessKey
from hangdoc.procfs.errors import ProcParseError
from hangdoc.procfs.stat import StatLine, parse_stat
from hangdoc.procfs.syscalls import P_PID, as_int, awaits, call_of, ends_by_itself
from hangdoc.procfs.wait import parse_system_call
from hangdoc.procfs.waitset import parse_labelled
from hangdoc_probes._reading import numbered, read, read_table

MOST_OUTSIDE = 20_000
"""Descriptors outside the launch that are looked at in one thorough round: 0.4 s. Beyond that it is not known who else
holds an end, and no edge is strong. Arbitrary."""

MOST_DESCRIPTORS = 4096
"""Descriptors of one process that are looked at (about 20 us each); arbitrary."""


MOST_THREADS = 64
"""Threads of a process outside the launch that are looked at; one that has more may go on. Arbitrary."""

MOST_GENERATIONS = 64
"""Ancestors that are followed upwards; a table read while pids were reused could have a loop. Arbitrary."""


@dataclass(frozen=True, slots=True)
class Held:
    """A descriptor of a process; reads, writes: what it was opened for."""

    pid: int
    fd: int
    reads: bool
    writes: bool


class Holders:
    """The descriptors of this round's processes, each read once and only when somebody asks.

    complete: every process that may be looked at was looked at.
    """

    def __init__(self, proc: Path, members: Iterable[ProcessKey]) -> None:
        self._proc = proc
        self._members = {key.pid for key in members}
        self._files: dict[int, dict[int, str]] = {}
        self._stats: dict[int, StatLine | None] = {}
        self._by_target: dict[str, list[tuple[int, int]]] | None = None
        self.complete = True

    def files(self, pid: int) -> dict[int, str]:
        """Return what every descriptor of a process points at. OSError when that may not be read."""
        if pid not in self._files:
            directory = f"{self._proc}/{pid}/fd"
            found = {}
            names = os.listdir(directory)  # noqa: PTH208  a path object costs more than the look
            self.complete = self.complete and len(names) <= MOST_DESCRIPTORS
            for name in names[:MOST_DESCRIPTORS]:
                try:
                    found[int(name)] = os.readlink(f"{directory}/{name}")  # noqa: PTH115  "pipe:[1]" is no path
                except FileNotFoundError:
                    continue  # closed in the meantime
            self._files[pid] = found
        return self._files[pid]

    def of(self, target: str) -> list[Held]:
        """Return every descriptor that points at this pipe, socket or file, by process and number."""
        held = (self._held(pid, fd) for pid, fd in self._index().get(target, ()))
        return sorted((one for one in held if one is not None), key=lambda one: (one.pid, one.fd))

    def of_file(self, path: str) -> list[Held]:
        """Return every descriptor of one file, also where a container knows its directory by another name.

        path: as hangdoc can open it. OSError when it is not there.
        """
        wanted, name = os.stat(path), path.rpartition("/")[2]  # noqa: PTH116  it may lead through /proc
        named = [one for target in self._index() if target.rpartition("/")[2] == name for one in self.of(target)]
        return [one for one in named if self._is_file(one, wanted)]

    def of_eventfd(self, identity: int) -> list[Held]:
        """Return every descriptor of one eventfd; the kernel numbers them since 5.2."""
        return [one for one in self.of("anon_inode:[eventfd]") if self._eventfd(one.pid, one.fd) == identity]

    def info(self, pid: int, fd: int) -> bytes:
        """Return a descriptor's fdinfo."""
        return read_table(f"{self._proc}/{pid}/fdinfo/{fd}")

    def stat(self, pid: int) -> StatLine | None:
        """Return a process's stat line; None when it is gone."""
        if pid not in self._stats:
            try:
                self._stats[pid] = parse_stat(read(f"{self._proc}/{pid}/stat"))
            except (OSError, ProcParseError):
                self._stats[pid] = None
        return self._stats[pid]

    def end(self, pid: int, fd: int | None = None, *, inherited: bool = False) -> LinkEnd | None:
        """Make the record of somebody at the other end; None when it is gone or a zombie, which can end no wait."""
        line = self.stat(pid)
        if line is None or line.state in "ZX":
            return None
        key = ProcessKey(pid, line.start_ticks)
        member = pid in self._members
        awaited = None if member else self._awaited(line)
        stopped = not member and line.state == "T"
        rests = None if member else self._rests(line)
        return LinkEnd(key, member, fd, inherited, line.name, stopped=stopped, awaited_pid=awaited, rests=rests)

    def _rests(self, line: StatLine) -> bool | None:
        """Tell whether a process outside the launch may go on by itself; None when that may not be seen."""
        machine = platform.machine()
        try:
            for tid in numbered(f"{self._proc}/{line.pid}/task")[:MOST_THREADS]:
                call = parse_system_call(read(f"{self._proc}/{line.pid}/task/{tid}/syscall"))
                if (
                    call is None
                    or call_of(call.number, machine) in {"sleep", "restart"}
                    or ends_by_itself(call, machine)
                ):
                    return True
        except (OSError, ProcParseError):
            return None
        return line.threads > MOST_THREADS

    def _awaited(self, line: StatLine) -> int | None:
        """Return whose end a process outside the launch waits for, when no thread of it could do anything else."""
        if line.threads != 1:
            return None
        try:
            call = parse_system_call(read(f"{self._proc}/{line.pid}/syscall"))
        except (OSError, ProcParseError):
            return None
        kind = None if call is None else awaits(call.number, platform.machine())
        if call is None or kind not in {"child", "child-by-id"}:
            return None
        first, second = map(as_int, call.args[:2])
        by_id = second if first == P_PID else 0
        pid = first if kind == "child" else by_id
        return pid if pid > 0 else None

    def tree_ticks(self, pid: int) -> int:
        """Return the CPU time so far of a process and all its descendants, those included that were waited for."""
        tree, ticks = {pid}, 0
        for one in sorted(listed_pids(self._proc), key=lambda one: one != pid):
            line = self.stat(one)
            ancestor, steps = line, 0
            while ancestor is not None and ancestor.pid not in tree and ancestor.ppid > 1 and steps < MOST_GENERATIONS:
                ancestor, steps = self.stat(ancestor.ppid), steps + 1
            if line is not None and ancestor is not None and ancestor.pid in tree:
                tree.add(one)
                ticks += line.utime_ticks + line.stime_ticks + line.child_utime_ticks + line.child_stime_ticks
        return ticks

    def identity(self, pid: int, fd: int) -> tuple[int, bool]:
        """Return the inode of an open file, and whether it is a FIFO."""
        found = os.stat(f"{self._proc}/{pid}/fd/{fd}")  # noqa: PTH116  the link leads past every path
        return found.st_ino, stat.S_ISFIFO(found.st_mode)

    def _index(self) -> dict[str, list[tuple[int, int]]]:
        if self._by_target is None:
            self._by_target = {}
            left = MOST_OUTSIDE
            # The newest first: who was started with the launch is more likely to share something with it.
            outsiders = sorted(set(listed_pids(self._proc)) - self._members, reverse=True)
            for pid in (*sorted(self._members), *outsiders):
                count = self._enter(pid)
                left -= 0 if pid in self._members else count
                if left < 0:
                    self.complete = False
                    break
        return self._by_target

    def _enter(self, pid: int) -> int:
        assert self._by_target is not None
        try:
            files = self.files(pid)
        except OSError:
            return 0  # gone, or somebody else's
        for fd, target in files.items():
            self._by_target.setdefault(target, []).append((pid, fd))
        return len(files)

    def _held(self, pid: int, fd: int) -> Held | None:
        try:
            # The mode of the link itself says what the descriptor was opened for (fs/proc/fd.c, tid_fd_update_inode).
            mode = os.lstat(f"{self._proc}/{pid}/fd/{fd}").st_mode
        except OSError:
            return None
        return Held(pid, fd, bool(mode & stat.S_IRUSR), bool(mode & stat.S_IWUSR))

    def _is_file(self, held: Held, wanted: os.stat_result) -> bool:
        try:
            return os.path.samestat(os.stat(f"{self._proc}/{held.pid}/fd/{held.fd}"), wanted)  # noqa: PTH116
        except OSError:
            return False  # closed in the meantime

    def _eventfd(self, pid: int, fd: int) -> int | None:
        try:
            return parse_labelled(self.info(pid, fd), b"eventfd-id")
        except OSError:
            return None
