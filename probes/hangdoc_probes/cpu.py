"""Who runs, who waits for a CPU and who sleeps: the clocks of every thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Payload, Sample
from hangdoc.model.thread import CpuUse, ThreadClock, ThreadState
from hangdoc.procfs.stat import parse_stat, process_stat
from hangdoc.procfs.thread import parse_switches, parse_thread_state
from hangdoc.sampling.probe import Context, Probe, Round, Session
from hangdoc_probes._held import Allowance, HeldFile, ThreadClocks
from hangdoc_probes._reading import missing, read, samples

NAME = "cpu"
MOVED_NS = 1_000_000
"""A thread that ran this long since the last round has its state read: a thread that waits for the interpreter lock
was measured at 1.3 to 2.4 ms of CPU a second, an idle one near 0."""
MOST_STATES = 256
"""Threads of one process whose state is read in one round (about 38 us each); arbitrary."""


class ProcessFiles:
    """What is held of one process: its stat file, those of its main thread, and the clocks of all threads."""

    def __init__(self, proc: Path, key: ProcessKey, allowance: Allowance) -> None:
        main = f"{proc}/{key.pid}/task/{key.pid}"
        self.clocks = ThreadClocks(proc, key.pid, allowance)
        self._held: list[HeldFile] = []
        try:
            for path in (f"{proc}/{key.pid}/stat", f"{main}/stat", f"{main}/status"):
                self._held.append(HeldFile(path, allowance))
        except OSError:
            self.close()
            raise
        self.stat, self.main_stat, self.main_status = self._held

    def close(self) -> None:
        """Let go of everything."""
        self.clocks.close()
        for held in self._held:
            held.close()


class CpuSession:
    """The clocks of every process seen so far."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")
        self._allowance = Allowance()
        self._files: dict[ProcessKey, ProcessFiles] = {}
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
        for key in self._files.keys() - present:
            self._files.pop(key).close()

    def _take_process(self, process: Process) -> Reading[Payload]:
        key = process.key
        files = self._files.get(key)
        if files is None:
            files = self._files[key] = ProcessFiles(self._proc, key, self._allowance)
        line = parse_stat(files.stat.read())
        if line.start_ticks != key.start_ticks:
            return Missing(NAME, "gone", "the process has ended; its pid was given to another")
        clocks = self._clocks(files, line.threads)
        return Known(CpuUse(process_stat(line, self._page_bytes), clocks, self._states(key.pid, files, clocks)))

    def _clocks(self, files: ProcessFiles, threads: int) -> Reading[tuple[ThreadClock, ...]]:
        try:
            return Known(files.clocks.read(threads, relist=self._thorough))
        except OSError as error:
            return missing(NAME, error)

    def _states(
        self, pid: int, files: ProcessFiles, clocks: Reading[tuple[ThreadClock, ...]]
    ) -> tuple[ThreadState, ...]:
        """Read the state of the main thread, and of those that ran most, or of all in a thorough round."""
        main = _state(pid, files.main_stat.read, files.main_status.read)
        if self._thorough and isinstance(clocks, Known):
            wanted = [clock.tid for clock in clocks.value]
        else:
            wanted = [tid for ran_ns, tid in sorted(files.clocks.ran, reverse=True) if ran_ns >= MOVED_NS]
        others = (self._other_state(pid, tid) for tid in wanted[:MOST_STATES] if tid != pid)
        return tuple(state for state in (main, *others) if state is not None)

    def _other_state(self, pid: int, tid: int) -> ThreadState | None:
        task = f"{self._proc}/{pid}/task/{tid}"
        return _state(tid, lambda: read(f"{task}/stat"), lambda: read(f"{task}/status"))


def _state(tid: int, stat: Callable[[], bytes], status: Callable[[], bytes]) -> ThreadState | None:
    try:
        return parse_thread_state(tid, stat(), parse_switches(NAME, status()))
    except (FileNotFoundError, ProcessLookupError):
        return None  # ended in this round: its clock is the last that is known of it


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
