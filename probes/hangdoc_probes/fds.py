"""Where the output goes and whether it arrives: descriptors 1 and 2, the logs, and the GPUs a process has open."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from pathlib import Path

from hangdoc.model.fd import OpenFile, OpenFiles
from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Payload, Sample
from hangdoc.procfs.descriptor import looks_like_log
from hangdoc.procfs.stat import split_stat
from hangdoc.procfs.syscalls import as_int, awaits
from hangdoc.procfs.wait import parse_system_call
from hangdoc.sampling.probe import Context, Probe, Round, Session
from hangdoc_probes._descriptors import NAME, describe, target_of
from hangdoc_probes._reading import missing, numbered, read, samples
from hangdoc_probes._threads import threads

OUTPUTS = (1, 2)
MOST_DESCRIPTORS = 1024
"""Descriptors of one process that are described in a thorough round (about 60 us each); arbitrary."""


class FdsSession:
    """Remembers which descriptors of a process are logs, and which pipes its threads were seen to write to."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._logs: dict[ProcessKey, frozenset[int]] = {}
        self._written_to: dict[ProcessKey, frozenset[int]] = {}
        self._thorough = False
        self._machine = platform.machine()

    def take(self, now: Round) -> Iterable[Sample]:
        """Read outputs and logs of every process, in a thorough round all its descriptors."""
        self._thorough = now.thorough
        present = {process.key for process in now.processes}
        self._logs = {key: logs for key, logs in self._logs.items() if key in present}
        self._written_to = {key: pipes for key, pipes in self._written_to.items() if key in present}
        return samples(NAME, now, lambda process: self._take_process(now, process))

    def close(self) -> None:
        """Nothing is held."""

    def _take_process(self, now: Round, process: Process) -> Reading[Payload]:
        pid = process.key.pid
        if split_stat(read(f"{self._proc}/{pid}/stat"))[2][0] in b"ZX":
            return Missing(NAME, "gone", "the process is a zombie: its files are closed")
        if self._thorough or process.key not in self._logs:
            return Known(self._all(process.key, self._written(now, pid)))
        written = self._written_to.get(process.key, frozenset())
        numbers = sorted({*OUTPUTS, *self._logs[process.key], *written})
        return Known(OpenFiles(complete=False, files=self._files(pid, numbers, written), nvidia=None))

    def _written(self, now: Round, pid: int) -> frozenset[int]:
        """Return the descriptors to which threads wait to write; none where what they wait in may not be read."""
        calls = (parse_system_call(line) for line in threads(now, self._proc, pid).calls.values() if line)
        found = (call for call in calls if call is not None and awaits(call.number, self._machine) == "room")
        return frozenset(as_int(call.args[0]) for call in found)

    def _all(self, key: ProcessKey, written: frozenset[int]) -> OpenFiles:
        numbers = numbered(f"{self._proc}/{key.pid}/fd")
        files = self._files(key.pid, numbers[:MOST_DESCRIPTORS], written)
        self._logs[key] = frozenset(file.fd for file in files if _is_log(file))
        self._written_to[key] = frozenset(file.fd for file in files if file.fd in written and file.kind == "pipe")
        nvidia = sorted({file.target for file in files if file.target.startswith("/dev/nvidia")})
        return OpenFiles(complete=len(numbers) <= MOST_DESCRIPTORS, files=files, nvidia=tuple(nvidia))

    def _files(self, pid: int, numbers: list[int], written: frozenset[int] = frozenset()) -> tuple[OpenFile, ...]:
        read_files = (self._file(pid, number, fill=number in OUTPUTS or number in written) for number in numbers)
        return tuple(file for file in read_files if file is not None)

    def _file(self, pid: int, number: int, *, fill: bool) -> OpenFile | None:
        try:
            target = target_of(self._proc, pid, number)
            return describe(self._proc, pid, number, target, fill=fill)
        except FileNotFoundError:
            return None  # closed in the meantime, or never open


def _is_log(file: OpenFile) -> bool:
    return file.kind == "file" and "w" in file.access and (file.append or looks_like_log(file.target))


def open_session(context: Context) -> Session:
    """Start reading a launch."""
    return FdsSession(context.proc)


def check(proc: Path) -> Reading[str]:
    """Say whether descriptors can be seen here."""
    try:
        numbered(f"{proc}/self/fd")
    except OSError as error:
        return missing(NAME, error)
    return Known("descriptors of one's own processes, or of any as root; how full a pipe is with the right to trace")


PROBE = Probe(
    name=NAME,
    title="where output goes, how far it got, which GPUs are open",
    open=open_session,
    check=check,
    deep=True,
    reads=("/proc/PID/fd", "/proc/PID/fdinfo", "/proc/PID/task/TID/syscall"),
)
