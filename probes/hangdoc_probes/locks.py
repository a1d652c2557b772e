"""Who waits for which lock and who holds it: futexes, the interpreter lock, Python locks, read from memory."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from pathlib import Path

from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Payload, Sample
from hangdoc.sampling.probe import Context, Probe, Round, Session
from hangdoc_probes._futexes import futex_waits
from hangdoc_probes._owners import Scene, read_locks
from hangdoc_probes._reading import gone, missing, read, samples
from hangdoc_probes._sharers import Outsiders
from hangdoc_probes._threads import MOST_CALLS, threads

NAME = "locks"


class LocksSession:
    """Looks in thorough rounds; remembers where a process's interpreter lock is, to read it while nobody waits."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._machine = platform.machine()
        self._gils: dict[ProcessKey, int] = {}
        self._outsiders = Outsiders(proc, ())

    def take(self, now: Round) -> Iterable[Sample]:
        """Read the locks of every process in a thorough round; nothing in another."""
        present = {process.key for process in now.processes}
        self._gils = {key: address for key, address in self._gils.items() if key in present}
        self._outsiders = Outsiders(self._proc, present)
        return samples(NAME, now, lambda process: self._take_process(now, process)) if now.thorough else ()

    def close(self) -> None:
        """Nothing is held."""

    def _take_process(self, now: Round, process: Process) -> Reading[Payload]:
        key = process.key
        if self._machine not in MACHINES:
            return Missing(NAME, "unsupported", f"system calls of {self._machine} are not known to hangdoc")
        scene = Scene(self._proc, key.pid, self._machine, self._gils.get(key, 0), self._outsiders)
        try:
            locks = read_locks(scene, futex_waits(threads(now, self._proc, key.pid), self._machine))
        except PermissionError as error:
            return missing(NAME, error, attach=True)
        finally:
            scene.close()
        if (replaced := gone(NAME, self._proc, key)) is not None:
            return replaced
        if scene.gil:
            self._gils[key] = scene.gil
        return Known(locks)


MACHINES = frozenset({"x86_64", "aarch64"})


def open_session(context: Context) -> Session:
    """Start reading a launch."""
    return LocksSession(context.proc)


def check(proc: Path) -> Reading[str]:
    """Say whether memory and system calls can be seen here."""
    try:
        read(f"{proc}/self/syscall")
    except OSError as error:
        return missing(NAME, error, attach=True)
    return Known(f"owners of locks, of {MOST_CALLS} threads at most; needs the right to trace the process")


PROBE = Probe(
    name=NAME,
    title="who holds the lock that a thread waits for",
    open=open_session,
    check=check,
    deadline_s=2.0,
    reads=("/proc/PID/task/TID/syscall", "/proc/*/maps", "the memory of the process, with process_vm_readv"),
)
