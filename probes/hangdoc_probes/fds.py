"""Where the output goes and whether it arrives: descriptors 1 and 2, the logs, and the GPUs a process has open."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hangdoc.model.fd import OpenFile, OpenFiles
from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Payload, Sample
from hangdoc.procfs.descriptor import looks_like_log
from hangdoc.procfs.stat import split_stat
from hangdoc.sampling.probe import Context, Probe, Round, Session
from hangdoc_probes._descriptors import NAME, describe, target_of
from hangdoc_probes._reading import missing, numbered, read, samples

OUTPUTS = (1, 2)
MOST_DESCRIPTORS = 1024
"""Descriptors of one process that are described in a thorough round (about 60 us each); arbitrary."""


class FdsSession:
    """Remembers which descriptors of a process are logs."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._logs: dict[ProcessKey, frozenset[int]] = {}
        self._thorough = False

    def take(self, now: Round) -> Iterable[Sample]:
        """Read outputs and logs of every process, in a thorough round all its descriptors."""
        self._thorough = now.thorough
        present = {process.key for process in now.processes}
        self._logs = {key: logs for key, logs in self._logs.items() if key in present}
        return samples(NAME, now, self._take_process)

    def close(self) -> None:
        """Nothing is held."""

    def _take_process(self, process: Process) -> Reading[Payload]:
        pid = process.key.pid
        if split_stat(read(f"{self._proc}/{pid}/stat"))[2][0] in b"ZX":
            return Missing(NAME, "gone", "the process is a zombie: its files are closed")
        if self._thorough or process.key not in self._logs:
            return Known(self._all(process.key))
        numbers = sorted({*OUTPUTS, *self._logs[process.key]})
        return Known(OpenFiles(complete=False, files=self._files(pid, numbers), nvidia=None))

    def _all(self, key: ProcessKey) -> OpenFiles:
        numbers = numbered(f"{self._proc}/{key.pid}/fd")
        files = self._files(key.pid, numbers[:MOST_DESCRIPTORS])
        self._logs[key] = frozenset(file.fd for file in files if _is_log(file))
        nvidia = sorted({file.target for file in files if file.target.startswith("/dev/nvidia")})
        return OpenFiles(complete=len(numbers) <= MOST_DESCRIPTORS, files=files, nvidia=tuple(nvidia))

    def _files(self, pid: int, numbers: list[int]) -> tuple[OpenFile, ...]:
        read_files = (self._file(pid, number) for number in numbers)
        return tuple(file for file in read_files if file is not None)

    def _file(self, pid: int, number: int) -> OpenFile | None:
        try:
            target = target_of(self._proc, pid, number)
            return describe(self._proc, pid, number, target, fill=number in OUTPUTS)
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
    reads=("/proc/PID/fd", "/proc/PID/fdinfo"),
)
