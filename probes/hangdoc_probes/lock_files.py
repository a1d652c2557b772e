"""Which lock file a thread asks for again and again, and whether anybody lives who holds it.

A thread in flock(2) sleeps in the kernel, and the links probe sees that. torch's FileBaton and the filelock package
ask, sleep and ask again: nothing in the kernel tells for which file. Their frames do: it is among their variables.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable
from pathlib import Path

from hangdoc.model.lock_file import LockFiles
from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Payload, Sample
from hangdoc.sampling.probe import Context, Probe, Round, Session
from hangdoc_probes._asked import Asked, described
from hangdoc_probes._askers import NAME, Asking, askers
from hangdoc_probes._holders import Holders
from hangdoc_probes._reading import missing, read, samples

MACHINES = frozenset({"x86_64", "aarch64"})


class LockFilesSession:
    """Looks in thorough rounds. What is open in other processes is read only when somebody asks for a lock file."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._machine = platform.machine()
        self._holders = Holders(proc, ())

    def take(self, now: Round) -> Iterable[Sample]:
        """Look what every process asks for in a thorough round; nothing in another."""
        self._holders = Holders(self._proc, (process.key for process in now.processes))
        return samples(NAME, now, self._take_process) if now.thorough else ()

    def close(self) -> None:
        """Nothing is held."""

    def _take_process(self, process: Process) -> Reading[Payload]:
        if self._machine not in MACHINES:
            return Missing(NAME, "unsupported", f"frames on {self._machine} are not known to hangdoc")
        found = askers(self._proc, process.key, self._machine)
        if isinstance(found, Missing):
            return found
        return Known(self._named(process.key, found.value))

    def _named(self, key: ProcessKey, asking: tuple[Asking, ...]) -> LockFiles:
        asked = Asked(self._proc, key.pid, self._holders)
        files = [(one.tid, described(asked, one)) for one in asking]
        return LockFiles(
            files=tuple(file for _, file in files if file is not None),
            unnamed=tuple(tid for tid, file in files if file is None),
        )


def open_session(context: Context) -> Session:
    """Start reading a launch."""
    return LockFilesSession(context.proc)


def check(proc: Path) -> Reading[str]:
    """Say whether memory can be seen here."""
    try:
        read(f"{proc}/self/auxv")
    except OSError as error:
        return missing(NAME, error, attach=True)
    return Known("lock files that Python threads poll for; needs the right to trace the process")


PROBE = Probe(
    name=NAME,
    title="which lock file a thread polls for, and who holds it",
    open=open_session,
    check=check,
    deadline_s=2.0,
    reads=("/proc/PID/mountinfo", "/proc/PID/fd", "the memory of the process, with process_vm_readv"),
)
