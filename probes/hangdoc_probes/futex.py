"""What a thread waits in: its system call with arguments, its wait channel, its state."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable
from pathlib import Path

from hangdoc.errors import HangdocError
from hangdoc.memory.image import words
from hangdoc.memory.process import ProcessMemory
from hangdoc.model.process import Process
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Payload, Sample
from hangdoc.model.thread import SystemCall, ThreadWait, Waits
from hangdoc.procfs.stat import split_stat
from hangdoc.procfs.status import parse_status
from hangdoc.procfs.syscalls import sleeps_until
from hangdoc.procfs.wait import parse_system_call, parse_wait_channel
from hangdoc.sampling.probe import Context, Probe, Round, Session
from hangdoc_probes._reading import missing, read, samples
from hangdoc_probes._threads import LINE_BYTES, Threads, main_thread, thread_file, threads

NAME = "futex"


class FutexSession:
    """Reads the main thread each round, every thread in a thorough one."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._machine = platform.machine()

    def take(self, now: Round) -> Iterable[Sample]:
        """Read what the threads of every process wait in."""
        return samples(NAME, now, lambda process: self._take_process(now, process))

    def close(self) -> None:
        """Nothing is held."""

    def _take_process(self, now: Round, process: Process) -> Reading[Payload]:
        pid = process.key.pid
        status = parse_status(read(f"{self._proc}/{pid}/status"))
        seen = threads(now, self._proc, pid) if now.thorough else main_thread(self._proc, pid)
        task = os.open(f"{self._proc}/{pid}/task", os.O_RDONLY | os.O_DIRECTORY)
        try:
            waits = [self._wait(pid, tid, seen, task) for tid in seen.stats]
        finally:
            os.close(task)
        found = tuple(wait for wait in waits if wait is not None)
        return Known(Waits(self._machine, status.tracer_pid, found, status.caught_signals))

    def _wait(self, pid: int, tid: int, seen: Threads, task: int) -> ThreadWait | None:
        stat = seen.stats[tid]
        channel = thread_file(task, tid, "wchan", LINE_BYTES)
        if not stat or not channel:
            return None  # ended in this round
        state = split_stat(stat)[2][0].decode()
        call = self._system_call(seen, tid)
        # Who may read the system call may see the wait channel too: it takes a lesser right.
        channel_read = parse_wait_channel(NAME, state, channel, allowed=isinstance(call, Known))
        return ThreadWait(tid, state, call, channel_read, self._sleep_left(pid, call))

    def _sleep_left(self, pid: int, call: Reading[SystemCall | None]) -> Reading[int | None]:
        if isinstance(call, Missing):
            return call
        address = sleeps_until(call.value, self._machine) if call.value is not None else None
        if address is None:
            return Known(None)
        memory = ProcessMemory(pid, self._proc)
        try:
            seconds, nanoseconds = words(memory.read(address, 16))
        except (OSError, HangdocError):
            return Missing(NAME, "failed", "the length of the sleep cannot be read")
        finally:
            memory.close()
        return Known(seconds * 10**9 + nanoseconds - time.clock_gettime_ns(time.CLOCK_MONOTONIC))

    def _system_call(self, seen: Threads, tid: int) -> Reading[SystemCall | None]:
        if seen.denied is not None:
            return missing(NAME, seen.denied, attach=True)
        line = seen.calls[tid]
        if not line:
            return Missing(NAME, "unsupported", "no syscall file: the thread has ended, or this kernel has none")
        return Known(parse_system_call(line))


def open_session(context: Context) -> Session:
    """Start reading a launch."""
    return FutexSession(context.proc)


def check(proc: Path) -> Reading[str]:
    """Say whether system calls can be seen here."""
    try:
        read(f"{proc}/self/syscall")
    except OSError as error:
        return missing(NAME, error, attach=True)
    return Known("system call, arguments and wait channel of a thread; needs the right to trace the process")


PROBE = Probe(
    name=NAME,
    title="the system call and wait channel of each thread",
    open=open_session,
    check=check,
    deep=True,
    reads=("/proc/PID/status", "/proc/PID/task/TID/syscall", "/proc/PID/task/TID/wchan", "/proc/PID/task/TID/stat"),
)
