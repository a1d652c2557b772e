"""What the threads of a process wait in, read once a round for every probe that asks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from hangdoc.sampling.probe import Round
from hangdoc_probes._reading import numbered

MOST_CALLS = 4096
"""Threads of one process whose system call is read, 8 us each; arbitrary."""
MOST_STATS = 512
"""Threads of one process whose stat is read too, another 12 us each; arbitrary."""
LINE_BYTES = 256
"""A number, six arguments, two pointers: 9 times 19 characters at most."""
PAGE_BYTES = 4096
"""More than a stat file has."""


@dataclass(frozen=True)
class Threads:
    """The threads of one process at one moment, the main thread first.

    calls: of the first MOST_CALLS of them what their syscall file says, b"" for one that has ended; stats: of the first
    MOST_STATS the same of their stat file; denied: why no system call could be read.
    """

    tids: tuple[int, ...]
    calls: dict[int, bytes]
    stats: dict[int, bytes]
    denied: PermissionError | None = None

    @property
    def all_read(self) -> bool:
        """The system call of every thread was read."""
        return len(self.calls) == len(self.tids)


def threads(now: Round, proc: Path, pid: int) -> Threads:
    """Return what the threads of a process wait in; OSError when the process is gone."""
    return now.shared.once((__name__, str(proc), pid), lambda: _threads(proc, pid))


def main_thread(proc: Path, pid: int) -> Threads:
    """Return what the main thread alone waits in."""
    return _read(proc, pid, (pid,))


def _threads(proc: Path, pid: int) -> Threads:
    return _read(proc, pid, tuple(sorted(numbered(f"{proc}/{pid}/task"), key=lambda tid: (tid != pid, tid))))


def _read(proc: Path, pid: int, tids: tuple[int, ...]) -> Threads:
    task = os.open(f"{proc}/{pid}/task", os.O_RDONLY | os.O_DIRECTORY)
    calls: dict[int, bytes] = {}
    denied: PermissionError | None = None
    try:
        stats = {tid: thread_file(task, tid, "stat", PAGE_BYTES) for tid in tids[:MOST_STATS]}
        for tid in tids[:MOST_CALLS]:
            calls[tid] = thread_file(task, tid, "syscall", LINE_BYTES)
    except PermissionError as error:
        denied = PermissionError(error.errno, error.strerror, f"{proc}/{pid}/task/{pid}/syscall")
        calls.clear()
    finally:
        os.close(task)
    return Threads(tids, calls, stats, denied)


def thread_file(task: int, tid: int, name: str, most_bytes: int) -> bytes:
    """Read a file of a thread below an open task directory; empty when the thread has ended."""
    try:
        descriptor = os.open(f"{tid}/{name}", os.O_RDONLY, dir_fd=task)
    except (FileNotFoundError, ProcessLookupError):
        return b""
    try:
        return os.read(descriptor, most_bytes)
    except ProcessLookupError:
        return b""
    finally:
        os.close(descriptor)
