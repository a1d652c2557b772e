"""Who runs, who waits for a CPU and who sleeps: the clocks of every thread."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Payload, Sample
from hangdoc.model.thread import CpuUse, ThreadClock, ThreadState
from hangdoc.procfs.stat import parse_stat, process_stat
from hangdoc.procfs.thread import parse_switches, parse_thread_state
from hangdoc.sampling.probe import Context, Probe, Round, Session
from hangdoc_probes._clocks import Allowance, ThreadClocks
from hangdoc_probes._reading import missing, read, samples

NAME = "cpu"
MOVED_NS = 1_000_000
"""A thread that ran this long since the last round has its state read: a thread that waits for the interpreter lock
was measured at 1.3 to 2.4 ms of CPU a second, an idle one near 0."""
MOST_STATES = 256
"""Threads of one process whose state is read in one round (about 38 us each); arbitrary."""


class CpuSession:
    """The clocks of every process seen so far."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")
        self._allowance = Allowance()
        self._threads: dict[ProcessKey, ThreadClocks] = {}
        self._before: dict[ProcessKey, tuple[ThreadClock, ...]] = {}
        self._thorough = False

    def take(self, now: Round) -> Iterable[Sample]:
        """Read stat of every process, schedstat of every thread, and the state of those that matter."""
        self._forget({process.key for process in now.processes})
        self._thorough = now.thorough
        return samples(NAME, now, self._take_process)

    def close(self) -> None:
        """Close all descriptors."""
        self._forget(set())

    def _forget(self, present: set[ProcessKey]) -> None:
        for key in self._threads.keys() - present:
            self._threads.pop(key).close()
            self._before.pop(key, None)

    def _take_process(self, process: Process) -> Reading[Payload]:
        key = process.key
        line = parse_stat(read(f"{self._proc}/{key.pid}/stat"))
        if line.start_ticks != key.start_ticks:
            return Missing(NAME, "gone", "the process has ended; its pid was given to another")
        clocks = self._clocks(key, line.threads)
        states = self._states(key, clocks.value if isinstance(clocks, Known) else ())
        return Known(CpuUse(process_stat(line, self._page_bytes), clocks, states))

    def _clocks(self, key: ProcessKey, threads: int) -> Reading[tuple[ThreadClock, ...]]:
        held = self._threads.get(key)
        if held is None:
            held = self._threads[key] = ThreadClocks(self._proc, key.pid, self._allowance)
        try:
            return Known(held.read(threads, relist=self._thorough))
        except OSError as error:
            return missing(NAME, error)

    def _states(self, key: ProcessKey, clocks: tuple[ThreadClock, ...]) -> tuple[ThreadState, ...]:
        before, self._before[key] = self._before.get(key, ()), clocks
        if clocks is before and not self._thorough:
            wanted = [key.pid]
        elif self._thorough:
            wanted = [key.pid, *(clock.tid for clock in clocks if clock.tid != key.pid)]
        else:
            wanted = [key.pid, *_moved(key.pid, before, clocks)]
        read_states = (self._state(key.pid, tid) for tid in wanted[:MOST_STATES])
        return tuple(state for state in read_states if state is not None)

    def _state(self, pid: int, tid: int) -> ThreadState | None:
        task = f"{self._proc}/{pid}/task/{tid}"
        try:
            return parse_thread_state(tid, read(f"{task}/stat"), parse_switches(NAME, read(f"{task}/status")))
        except (FileNotFoundError, ProcessLookupError):
            return None  # ended in this round: its clock is the last that is known of it


def _moved(main: int, before: tuple[ThreadClock, ...], clocks: tuple[ThreadClock, ...]) -> list[int]:
    """Return the threads that ran since the last round, those that ran most first; the main one is read anyway."""
    known = {clock.tid: clock for clock in before}
    ran = [
        (clock.run_ns - old.run_ns, clock.tid)
        for clock in clocks
        if (old := known.get(clock.tid)) is not clock and old is not None and clock.tid != main
    ]
    return [tid for ran_ns, tid in sorted(ran, reverse=True) if ran_ns >= MOVED_NS]


def open_session(context: Context) -> Session:
    """Start reading a launch."""
    return CpuSession(context.proc)


def check(proc: Path) -> Reading[str]:
    """Say whether this kernel keeps the clocks."""
    try:
        read(f"{proc}/self/schedstat")
    except OSError as error:
        return missing(NAME, error)
    return Known("CPU time, run-queue wait and context switches of every thread; needs no rights")


PROBE = Probe(
    name=NAME,
    title="CPU time, run-queue wait and state of every thread",
    open=open_session,
    check=check,
    reads=("/proc/PID/stat", "/proc/PID/task/TID/schedstat", "/proc/PID/task/TID/stat", "/proc/PID/task/TID/status"),
)
