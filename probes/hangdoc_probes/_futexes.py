"""Lists the threads of a process that wait for a futex."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from hangdoc.procfs.syscalls import FutexCall, futex_call
from hangdoc.procfs.wait import parse_system_call
from hangdoc_probes._threads import LINE_BYTES, Threads, thread_file


@dataclass(frozen=True)
class FutexWaits:
    """The threads of a process (as /proc numbers them) and those that wait for a futex.

    places: where in the program each of these goes on when it is woken; complete: all threads were read.
    """

    tids: tuple[int, ...]
    calls: dict[int, FutexCall]
    places: dict[int, int]
    complete: bool


def futex_waits(seen: Threads, machine: str) -> FutexWaits:
    """Tell which threads wait for a futex; PermissionError where that may not be seen."""
    if seen.denied is not None:
        raise seen.denied
    calls: dict[int, FutexCall] = {}
    places: dict[int, int] = {}
    known: dict[bytes, FutexCall | None] = {}
    for tid, line in seen.calls.items():
        # Threads of a pool wait with the same arguments, but each has its own stack.
        arguments = line.rsplit(b" ", 2)[0]
        if arguments not in known:
            found = parse_system_call(line) if line else None
            known[arguments] = futex_call(found, machine) if found else None
        call = known[arguments]
        if call is not None:
            calls[tid], places[tid] = call, int(line.split()[-1], 16)
    return FutexWaits(seen.tids, calls, places, complete=seen.all_read)


def still_waits(proc: Path, pid: int, tid: int, call: FutexCall, machine: str) -> bool:
    """Tell whether a thread is still in the same wait: only then what was read of the lock is about it."""
    task = os.open(f"{proc}/{pid}/task", os.O_RDONLY | os.O_DIRECTORY)
    try:
        line = thread_file(task, tid, "syscall", LINE_BYTES)
    finally:
        os.close(task)
    found = parse_system_call(line) if line else None
    return found is not None and futex_call(found, machine) == call
