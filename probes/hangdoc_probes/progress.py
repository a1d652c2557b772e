"""What moves when work is done: bytes, page faults, resident memory, children."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from hangdoc.model.process import Process
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Payload, Sample
from hangdoc.model.thread import ProcessIo, Progress
from hangdoc.procfs.counters import parse_io
from hangdoc.procfs.stat import parse_stat
from hangdoc.sampling.probe import Context, Probe, Round, Session
from hangdoc_probes._reading import missing, read, samples

NAME = "progress"


class ProgressSession:
    """Reads totals only: what moved is the trace's business."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")

    def take(self, now: Round) -> Iterable[Sample]:
        """Read the totals of every process."""
        return samples(NAME, now, self._take_process)

    def close(self) -> None:
        """Nothing is held."""

    def _take_process(self, process: Process) -> Reading[Payload]:
        line = parse_stat(read(f"{self._proc}/{process.key.pid}/stat"))
        if line.start_ticks != process.key.start_ticks:
            return Missing(NAME, "gone", "the process has ended; its pid was given to another")
        return Known(
            Progress(
                io=self._io(process.key.pid),
                rss_bytes=line.rss_pages * self._page_bytes,
                minor_faults=line.minor_faults,
                major_faults=line.major_faults,
                child_minor_faults=line.child_minor_faults,
                child_cpu_ticks=line.child_utime_ticks + line.child_stime_ticks,
            )
        )

    def _io(self, pid: int) -> Reading[ProcessIo]:
        try:
            return Known(parse_io(read(f"{self._proc}/{pid}/io")))
        except OSError as error:
            return missing(NAME, error)


def open_session(context: Context) -> Session:
    """Start reading a launch."""
    return ProgressSession(context.proc)


def check(proc: Path) -> Reading[str]:
    """Say whether bytes read and written can be seen."""
    try:
        read(f"{proc}/self/io")
    except OSError as error:
        return missing(NAME, error)
    return Known("page faults, memory and children of any process; bytes read and written of one's own, or as root")


PROBE = Probe(
    name=NAME,
    title="bytes read and written, page faults, memory, children",
    open=open_session,
    check=check,
    reads=("/proc/PID/stat", "/proc/PID/io"),
)
