"""Whether a running Python thread goes round a loop: its instruction, looked at again and again within milliseconds."""

from __future__ import annotations

import platform
import random
import time
from collections.abc import Iterable
from pathlib import Path

from hangdoc.cpython.places import look_at
from hangdoc.cpython.runtime import PythonThread, Runtime, find_runtime, python_threads
from hangdoc.errors import HangdocError
from hangdoc.glibc.locks import Crew
from hangdoc.memory.bounded import Bounded, SpentError
from hangdoc.memory.image import UnknownLayoutError
from hangdoc.memory.process import ProcessMemory
from hangdoc.model.places import Places, ThreadPlaces
from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Payload, Sample
from hangdoc.procfs.stat import split_stat
from hangdoc.sampling.probe import Context, Probe, Round, Session
from hangdoc_probes._reading import attempt, missing, program_file, read
from hangdoc_probes._tids import Tids

NAME = "places"

PAUSES_S = (0.0002, 0.0012)
"""Least and longest pause between two looks, drawn at random so that no loop is in step with them; arbitrary."""

MOST_RUNNING = 4
"""Running Python threads of one process that are looked at: only one of them has the interpreter lock. Arbitrary."""

MOST_BYTES, MOST_READS = 8 << 20, 50_000
"""Read of one process in one take; arbitrary: a process of 500 threads takes 100 KB."""

MACHINES = frozenset({"x86_64", "aarch64"})


class PlacesSession:
    """Remembers where each interpreter is; a process without a running thread costs one line of /proc."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._machine = platform.machine()
        self._runtimes: dict[ProcessKey, Runtime | None] = {}

    def take(self, now: Round) -> Iterable[Sample]:
        """Look at the threads of every process whose main thread runs at this moment."""
        present = {process.key for process in now.processes}
        self._runtimes = {key: runtime for key, runtime in self._runtimes.items() if key in present}
        for process in now.processes:
            if self._machine in MACHINES and self._runs(process.key.pid, process.key.pid):
                yield Sample(
                    probe=NAME,
                    process=process.key,
                    taken_ns=time.clock_gettime_ns(time.CLOCK_BOOTTIME),
                    reading=attempt(NAME, lambda: self._take_process(process)),  # noqa: B023
                )

    def close(self) -> None:
        """Nothing is held."""

    def _runs(self, pid: int, tid: int) -> bool:
        try:
            return split_stat(read(f"{self._proc}/{pid}/task/{tid}/stat"))[2][0] == b"R"
        except (OSError, HangdocError):
            return False  # it has ended

    def _take_process(self, process: Process) -> Reading[Payload]:
        memory = ProcessMemory(process.key.pid, self._proc)
        try:
            return self._look(process.key, Bounded(memory, MOST_BYTES, MOST_READS))
        except PermissionError as error:
            return missing(NAME, error, attach=True)
        except UnknownLayoutError as error:
            return Missing(NAME, "unsupported", error.message)
        except SpentError as error:
            return Missing(NAME, "failed", error.message)
        finally:
            memory.close()

    def _look(self, key: ProcessKey, memory: Bounded) -> Reading[Payload]:
        runtime = self._runtime(key, memory)
        if runtime is None:
            return Known(Places(()))
        tids = Tids(self._proc, key.pid)
        threads = python_threads(memory, runtime, Crew(tids.inner, self._machine))
        running = [one for one in threads if one.state and self._runs(key.pid, tids.outer[one.tid])]
        found = (self._seen(memory, runtime, one, tids.outer[one.tid]) for one in running[:MOST_RUNNING])
        return Known(Places(tuple(one for one in found if one is not None)))

    def _runtime(self, key: ProcessKey, memory: Bounded) -> Runtime | None:
        if key not in self._runtimes:
            auxiliary = read(f"{self._proc}/{key.pid}/auxv")
            self._runtimes[key] = find_runtime(memory, auxiliary, program_file(self._proc, key.pid))
        return self._runtimes[key]

    def _seen(self, memory: Bounded, runtime: Runtime, thread: PythonThread, tid: int) -> ThreadPlaces | None:
        seen = look_at(memory, runtime, thread, lambda: time.sleep(random.uniform(*PAUSES_S)))  # noqa: S311
        if seen is None:
            return None
        return ThreadPlaces(
            tid, seen.function, seen.file, len(seen.looks), seen.same_frame, seen.places, seen.turns, seen.endless
        )


def open_session(context: Context) -> Session:
    """Start looking at a launch."""
    return PlacesSession(context.proc)


def check(proc: Path) -> Reading[str]:
    """Say whether memory can be read here."""
    try:
        read(f"{proc}/self/syscall")
    except OSError as error:
        return missing(NAME, error, attach=True)
    return Known("instructions of running Python threads, 3.11 to 3.13; needs the right to trace the process")


PROBE = Probe(
    name=NAME,
    title="whether a running Python thread goes round a loop",
    open=open_session,
    check=check,
    every=2,
    background=True,
    deep=True,
    deadline_s=5.0,
    reads=("/proc/PID/task/TID/stat", "/proc/PID/auxv", "the memory of the process, with process_vm_readv"),
)
