"""What a thread waits in: its system call with arguments, its wait channel, its state."""

from __future__ import annotations

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
from hangdoc_probes._reading import missing, numbered, read, samples

NAME = "futex"
MOST_THREADS = 512
"""Threads of one process that are read in a thorough round (about 45 us each); arbitrary."""


class FutexSession:
    """Reads the main thread each round, every thread in a thorough one."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._machine = platform.machine()
        self._thorough = False

    def take(self, now: Round) -> Iterable[Sample]:
        """Read what the threads of every process wait in."""
        self._thorough = now.thorough
        return samples(NAME, now, self._take_process)

    def close(self) -> None:
        """Nothing is held."""

    def _take_process(self, process: Process) -> Reading[Payload]:
        pid = process.key.pid
        status = parse_status(read(f"{self._proc}/{pid}/status"))
        tids = [pid]
        if self._thorough:
            tids += [tid for tid in numbered(f"{self._proc}/{pid}/task") if tid != pid][: MOST_THREADS - 1]
        waits = (self._wait(pid, tid) for tid in tids)
        return Known(Waits(self._machine, status.tracer_pid, tuple(wait for wait in waits if wait is not None)))

    def _wait(self, pid: int, tid: int) -> ThreadWait | None:
        task = f"{self._proc}/{pid}/task/{tid}"
        try:
            call = self._system_call(f"{task}/syscall")
            channel = read(f"{task}/wchan")
            state = split_stat(read(f"{task}/stat"))[2][0].decode()
        except (FileNotFoundError, ProcessLookupError):
            return None  # ended in this round
        # Who may read the system call may see the wait channel too: it takes a lesser right.
        allowed = isinstance(call, Known)
        channel_read = parse_wait_channel(NAME, state, channel, allowed=allowed)
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

    def _system_call(self, path: str) -> Reading[SystemCall | None]:
        try:
            return Known(parse_system_call(read(path)))
        except PermissionError as error:
            return missing(NAME, error, attach=True)
        except FileNotFoundError:
            return Missing(NAME, "unsupported", "no syscall file: the thread has ended, or this kernel has none")


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
