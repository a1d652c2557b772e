"""Lists the threads of a process that wait for a futex."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from hangdoc.procfs.syscalls import FutexCall, futex_call
from hangdoc.procfs.wait import parse_system_call
from hangdoc_probes._reading import numbered

MOST_THREADS = 4096
"""Threads of one process that are looked at, 15 us each; arbitrary."""
LINE_BYTES = 256
"""A number, six arguments, two pointers: 9 times 19 characters at most."""


@dataclass(frozen=True)
class FutexWaits:
    """The threads of a process (as /proc numbers them) and those that wait for a futex.

    complete: all of them were read.
    """

    tids: tuple[int, ...]
    calls: dict[int, FutexCall]
    complete: bool


def futex_waits(proc: Path, pid: int, machine: str) -> FutexWaits:
    """Read what every thread waits in; PermissionError where that may not be seen."""
    tids = tuple(numbered(f"{proc}/{pid}/task"))
    task = os.open(f"{proc}/{pid}/task", os.O_RDONLY | os.O_DIRECTORY)
    try:
        lines = {tid: _line(task, tid) for tid in tids[:MOST_THREADS]}
    finally:
        os.close(task)
    calls: dict[int, FutexCall] = {}
    known: dict[bytes, FutexCall | None] = {}
    for tid, line in lines.items():
        # Threads of a pool wait with the same arguments, but each has its own stack.
        arguments = line.rsplit(b" ", 2)[0]
        if arguments not in known:
            found = parse_system_call(line) if line else None
            known[arguments] = futex_call(found, machine) if found else None
        call = known[arguments]
        if call is not None:
            calls[tid] = call
    return FutexWaits(tids, calls, complete=len(tids) <= MOST_THREADS)


def still_waits(proc: Path, pid: int, tid: int, call: FutexCall, machine: str) -> bool:
    """Tell whether a thread is still in the same wait: only then what was read of the lock is about it."""
    task = os.open(f"{proc}/{pid}/task", os.O_RDONLY | os.O_DIRECTORY)
    try:
        line = _line(task, tid)
    finally:
        os.close(task)
    found = parse_system_call(line) if line else None
    return found is not None and futex_call(found, machine) == call


def _line(task: int, tid: int) -> bytes:
    """Read a syscall file below an open task directory; empty when the thread has ended."""
    try:
        descriptor = os.open(f"{tid}/syscall", os.O_RDONLY, dir_fd=task)
    except (FileNotFoundError, ProcessLookupError):
        return b""
    try:
        return os.read(descriptor, LINE_BYTES)
    except ProcessLookupError:
        return b""
    finally:
        os.close(descriptor)
