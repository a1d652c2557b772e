"""Read files that are read again and again through descriptors that stay open: three times cheaper than opening."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from hangdoc.model.thread import ThreadClock
from hangdoc.procfs.thread import parse_schedstat
from hangdoc_probes._reading import numbered, read

HELD_RATIO = 0.5
"""Share of the descriptor limit that may be held: the rest is for everything else; arbitrary."""
MOST_HELD = 20_000
"""4.1 KiB of kernel memory each were measured: 80 MiB at most."""
LINE_BYTES = 64
"""Three counters of 64 bits, two blanks, a newline: 63 at most."""
PAGE_BYTES = 4096
"""More than a stat or a status file has."""
NOT_HELD = -1


class Allowance:
    """How many descriptors may be held; raises the soft limit, within the hard one, to make room for them."""

    def __init__(self) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = int(MOST_HELD / HELD_RATIO)
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        if soft != resource.RLIM_INFINITY and soft < limit:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        self.left = int(limit * HELD_RATIO)

    def open(self, path: str) -> int:
        """Open a file to hold, or return NOT_HELD when the allowance is used up."""
        if self.left <= 0:
            return NOT_HELD
        descriptor = os.open(path, os.O_RDONLY)
        self.left -= 1
        return descriptor

    def close(self, descriptor: int) -> None:
        """Give a held descriptor back."""
        if descriptor != NOT_HELD:
            os.close(descriptor)
            self.left += 1


class HeldFile:
    """One file that is read every round; a held one belongs to its process whoever has the pid now."""

    def __init__(self, path: str, allowance: Allowance) -> None:
        self._path = path
        self._allowance = allowance
        self._descriptor = allowance.open(path)

    def read(self) -> bytes:
        """Read the file as it is now."""
        if self._descriptor == NOT_HELD:
            return read(self._path)
        return os.pread(self._descriptor, PAGE_BYTES, 0)

    def close(self) -> None:
        """Let go of the descriptor."""
        self._allowance.close(self._descriptor)


class ThreadClocks:
    """The clocks of one process's threads.

    ran: (ran_ns, tid) of each thread that ran between the last two readings.
    """

    def __init__(self, proc: Path, pid: int, allowance: Allowance) -> None:
        self.ran: list[tuple[int, int]] = []
        self._task = f"{proc}/{pid}/task"
        self._proc, self._pid = proc, pid
        self._allowance = allowance
        self._held: dict[int, int] = {}
        self._partly = False
        self._lines: list[bytes] = []
        self._clocks: tuple[ThreadClock, ...] = ()

    def read(self, threads: int, *, relist: bool) -> tuple[ThreadClock, ...]:
        """Return every thread's clock; threads: how many there are now, as the process's stat line says."""
        if relist or threads != len(self._held):
            self._list(reused=False)
        try:
            lines = [self._line(tid, held) for tid, held in self._held.items()] if self._partly else self._read_held()
        except (ProcessLookupError, FileNotFoundError):
            self._list(reused=True)
            lines = self._read_surviving()
        return self._parse(lines)

    def close(self) -> None:
        """Let go of all descriptors."""
        while self._held:
            self._drop(next(iter(self._held)))

    def _read_held(self) -> list[bytes]:
        # The warm path: nothing but one system call a thread.
        pread = os.pread
        return [pread(descriptor, LINE_BYTES, 0) for descriptor in self._held.values()]

    def _line(self, tid: int, descriptor: int) -> bytes:
        if descriptor == NOT_HELD:
            return read(f"{self._task}/{tid}/schedstat")
        return os.pread(descriptor, LINE_BYTES, 0)

    def _read_surviving(self) -> list[bytes]:
        lines = []
        for tid, descriptor in list(self._held.items()):
            try:
                lines.append(self._line(tid, descriptor))
            except (ProcessLookupError, FileNotFoundError):
                self._drop(tid)
        if not lines:
            read(f"{self._proc}/{self._pid}/schedstat")  # raises what is wrong: the process or the file is not there
        return lines

    def _list(self, *, reused: bool) -> None:
        present = numbered(self._task)
        if reused:
            # A held descriptor outlives its thread and says so, even when another thread has got the number since.
            self._drop_ended()
        if present == list(self._held):
            return
        for tid in self._held.keys() - set(present):
            self._drop(tid)
        self._held = {tid: self._held[tid] if tid in self._held else self._open(tid) for tid in present}
        self._partly = NOT_HELD in self._held.values()
        self._lines, self._clocks = [], ()

    def _drop_ended(self) -> None:
        for tid, descriptor in list(self._held.items()):
            try:
                self._line(tid, descriptor)
            except (ProcessLookupError, FileNotFoundError):
                self._drop(tid)

    def _open(self, tid: int) -> int:
        try:
            return self._allowance.open(f"{self._task}/{tid}/schedstat")
        except (ProcessLookupError, FileNotFoundError):
            return NOT_HELD  # ended since the listing, which the reading will find out

    def _drop(self, tid: int) -> None:
        self._allowance.close(self._held.pop(tid))
        self._lines, self._clocks = [], ()

    def _parse(self, lines: list[bytes]) -> tuple[ThreadClock, ...]:
        # A thread that slept since the last round has the same line: its record is taken over.
        self.ran = []
        if lines == self._lines:
            return self._clocks
        if not self._lines:
            self._clocks = tuple(map(parse_schedstat, self._held, lines))
        else:
            self._clocks = self._changed(lines)
        self._lines = lines
        return self._clocks

    def _changed(self, lines: list[bytes]) -> tuple[ThreadClock, ...]:
        clocks = list(self._clocks)
        for at, (line, before) in enumerate(zip(lines, self._lines, strict=True)):
            if line != before:
                old, clocks[at] = clocks[at], parse_schedstat(clocks[at].tid, line)
                self.ran.append((clocks[at].run_ns - old.run_ns, old.tid))
        return tuple(clocks)
