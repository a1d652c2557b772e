"""Threads as the kernel accounts for them: clocks, state, the system call they wait in."""

from __future__ import annotations

from msgspec import Struct

from hangdoc.model.reading import Known, Reading


class ThreadClock(Struct, frozen=True, array_like=True):
    """/proc/PID/task/TID/schedstat: time on a CPU, time waiting for one, and time slices run; totals."""

    tid: int
    run_ns: int
    wait_ns: int
    slices: int


class ThreadState(Struct, frozen=True, array_like=True):
    """/proc/PID/task/TID/stat and the context switches of its status file; totals since the thread began."""

    tid: int
    name: str
    state: str
    utime_ticks: int
    stime_ticks: int
    minor_faults: int
    major_faults: int
    voluntary_switches: Reading[int]
    involuntary_switches: Reading[int]


class ProcessStat(Struct, frozen=True, array_like=True):
    """/proc/PID/stat: the process's totals. state: of its main thread; threads: left, an ended main one included."""

    state: str
    ppid: int
    utime_ticks: int
    stime_ticks: int
    minor_faults: int
    major_faults: int
    threads: int
    rss_bytes: int

    @property
    def is_zombie(self) -> bool:
        """Tell whether the process has ended; a main thread that ended alone shows "Z" beside others that live."""
        return self.state == "Z" and self.threads <= 1


class CpuUse(Struct, frozen=True, tag="cpu"):
    """The cpu probe's reading of one process.

    clocks: one entry a thread; Missing where the kernel keeps no schedstat.
    states: of the main thread and of those threads whose clock moved (or all, in a thorough round).
    """

    stat: ProcessStat
    clocks: Reading[tuple[ThreadClock, ...]]
    states: tuple[ThreadState, ...]


class SystemCall(Struct, frozen=True, array_like=True):
    """/proc/PID/task/TID/syscall of a thread that is inside the kernel; number -1: not in a system call."""

    number: int
    args: tuple[int, ...]


class ThreadWait(Struct, frozen=True, array_like=True):
    """What a thread waits in.

    state: R, S, D, T, t, Z ...; system_call: Missing when denied; a running thread has Known(None).
    wait_channel: the kernel function it sleeps in, Known("") when it runs; the kernel answers "0" for "denied",
    which is Missing here.
    sleep_left_ns: of a sleep until a moment (as time.sleep does it since Python 3.11), how much of it is left;
    Known(None): it does not sleep, or for a length of time that began at an unknown moment.
    """

    tid: int
    state: str
    system_call: Reading[SystemCall | None]
    wait_channel: Reading[str]
    sleep_left_ns: Reading[int | None] = Known(None)


class Waits(Struct, frozen=True, tag="waits"):
    """The futex probe's reading of one process.

    machine: platform.machine() of the target, because system-call numbers depend on it ("x86_64", "aarch64").
    tracer_pid: TracerPid of the main thread; 0 means nobody traces it; caught_signals: a bit for each signal that the
    process has a handler for, that of signal 1 lowest; 0 in a trace that is older than this field.
    """

    machine: str
    tracer_pid: int
    threads: tuple[ThreadWait, ...]
    caught_signals: int = 0


class ProcessIo(Struct, frozen=True, array_like=True):
    """/proc/PID/io: totals over all threads, dead ones included. recv and send are not counted in rchar and wchar."""

    rchar_bytes: int
    wchar_bytes: int
    read_calls: int
    write_calls: int
    read_bytes: int
    write_bytes: int


class Progress(Struct, frozen=True, tag="progress"):
    """The progress probe's reading of one process: what moves when work is done."""

    io: Reading[ProcessIo]
    rss_bytes: int
    minor_faults: int
    major_faults: int
    child_minor_faults: int
    child_cpu_ticks: int
