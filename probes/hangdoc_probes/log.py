"""Reads the launch's own log: which milestones it reached, which crash lines it holds, whether it grows."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from hangdoc import discovery
from hangdoc.logs.lines import events
from hangdoc.model.log import LogEvent, LogTail
from hangdoc.model.process import Process
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Sample
from hangdoc.sampling.probe import Context, Probe, Round, Session
from hangdoc_probes._reading import missing

_FIRST_READ_BYTES = 2 << 20
"""How much of an existing log is read on attaching: a start writes 10 to 200 KiB, so its milestones are in."""

_MOST_BYTES_A_ROUND = 4 << 20
"""A log that grows faster is read from its end: its milestones are long past. Arbitrary."""

_KEPT_OF_A_KIND = 3
"""Batch and progress lines kept of one reading: the last ones tell as much as all. Arbitrary."""


@dataclass
class _File:
    """A log file that is being followed. end: bytes read so far; rest: the unfinished line at the end."""

    descriptor: int
    path: str
    writers: tuple[int, ...]
    end: int
    rest: bytes = b""
    first: bool = True


class _Log(Session):
    def __init__(self, context: Context) -> None:
        self._proc = context.proc
        self._engine = discovery.engine(context.launch.engine)
        self._root = context.launch.root
        self._since = _started(context)
        self._files: dict[tuple[int, int], _File] = {}
        self._looked: set[int] = set()
        self._denied: Missing | None = None

    def take(self, now: Round) -> Iterable[Sample]:
        """Read what every log file gained since the last round."""
        for process in now.processes:
            if process.key.pid not in self._looked and process.role != "compiler":
                self._find(process)
        if not self._files:
            yield self._sample(self._denied or Missing("log", "unsupported", *_NO_FILE))
        for file in self._files.values():
            yield self._sample(Known(self._tail(file)))

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            os.close(file.descriptor)
        self._files.clear()

    def _find(self, process: Process) -> None:
        self._looked.add(process.key.pid)
        for number in (1, 2):
            link = self._proc / str(process.key.pid) / "fd" / str(number)
            try:
                # A pipe is not even opened: that would wake whoever waits for a reader of it.
                if not stat.S_ISREG(link.stat().st_mode):
                    continue
                descriptor = os.open(link, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
            except PermissionError as error:
                self._denied = missing("log", error)
                continue
            except OSError:
                continue  # a socket, or the process has ended
            self._add(descriptor, str(link), process.key.pid)

    def _add(self, descriptor: int, link: str, pid: int) -> None:
        status = os.fstat(descriptor)
        name = (status.st_dev, status.st_ino)
        known = self._files.get(name)
        if not stat.S_ISREG(status.st_mode) or known is not None:
            os.close(descriptor)
            if known is not None and pid not in known.writers:
                known.writers = (*known.writers, pid)
            return
        path = str(Path(link).readlink())
        self._files[name] = _File(descriptor, path, (pid,), max(0, status.st_size - _FIRST_READ_BYTES))

    def _tail(self, file: _File) -> LogTail:
        status = os.fstat(file.descriptor)
        if status.st_size < file.end:  # truncated by a rotation: begin again
            file.end, file.rest = 0, b""
        start = max(file.end, status.st_size - _MOST_BYTES_A_ROUND)
        if start != file.end:
            file.rest = b""
        data = file.rest + os.pread(file.descriptor, status.st_size - start, start)
        whole = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        begin = start - len(file.rest)
        file.rest, file.end = data[whole:][-_FIRST_READ_BYTES:], status.st_size
        first, file.first = file.first, False
        found = events(data[:whole], self._engine, begin, self._since)
        return LogTail(
            path=file.path,
            writers=tuple(sorted(file.writers)),
            size_bytes=status.st_size,
            modified_wall_ns=status.st_mtime_ns,
            events=tuple(_of_this_launch(_thin(found))),
            first=first,
        )

    def _sample(self, reading: Known[LogTail] | Missing) -> Sample:
        taken_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        return Sample(probe="log", process=None, taken_ns=taken_ns, reading=reading)  # type: ignore[arg-type]


_NO_FILE = (
    "no member writes its standard output or error to a file",
    "start the server with its output in a file to let hangdoc read its milestones",
)


def _thin(found: Iterator[LogEvent]) -> list[LogEvent]:
    """Keep milestones and crash lines, and of the endless kinds the last few."""
    kept = list(found)
    endless = [event for event in kept if event.kind in {"batch", "progress"}]
    dropped = {id(event) for event in endless[:-_KEPT_OF_A_KIND]}
    return [event for event in kept if id(event) not in dropped]


def _of_this_launch(found: list[LogEvent]) -> list[LogEvent]:
    """Drop what stands before the last server_args line: another launch wrote it to the same file."""
    begins = [position for position, event in enumerate(found) if event.name == "server-args"]
    return found[begins[-1] :] if begins else found


def _started(context: Context) -> datetime:
    """Return the launch's start in local time, whole seconds, as the engines stamp their lines."""
    boot_wall_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    started_s = boot_wall_s + context.launch.root.start_ticks / os.sysconf("SC_CLK_TCK")
    return datetime.fromtimestamp(int(started_s) - 1)  # noqa: DTZ006  # the engines stamp local time without a zone


def _check(proc: Path) -> Reading[str]:
    del proc
    return Known("log files of the launch's own output, where they are readable")


PROBE = Probe(
    name="log",
    title="milestones, crash lines and growth of the launch's log",
    host=True,
    open=_Log,
    check=_check,
    deadline_s=1.0,
    budget_ratio=0.05,
    reads=("/proc/PID/fd/1", "/proc/PID/fd/2"),
)
