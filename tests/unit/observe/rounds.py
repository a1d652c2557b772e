"""Rounds of a launch that exists only on paper, and an observer that plays them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from hangdoc.model.log import LogEvent, LogTail
from hangdoc.model.process import Launch, Process, ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Payload, Sample, Snapshot
from hangdoc.model.stack import Frame, Stack, Stacks, ThreadStack
from hangdoc.model.thread import CpuUse, ProcessStat
from hangdoc.observe.attach import Attached
from hangdoc.observe.ring import Ring
from hangdoc.observe.tape import Tape
from hangdoc.sampling.collect import Observer
from hangdoc.sampling.pace import Pace
from hangdoc.trace.records import Header
from hangdoc.trace.writer import Writer

LAUNCHER = Process(key=ProcessKey(100, 1), ppid=1, role="launcher")
RANK = Process(key=ProcessKey(101, 2), ppid=100, role="scheduler", rank={"tp": 0})
LAUNCH = Launch(root=LAUNCHER.key, engine="sglang", processes=(LAUNCHER, RANK))
HEADER = Header(
    hangdoc="0",
    host="node1",
    machine="x86_64",
    cpus=2,
    clock_ticks_per_s=100,
    started_wall_ns=0,
    interval_s=1.0,
    launch=LAUNCH,
)


def cpu(process: Process, state: str = "S") -> Sample:
    stat = ProcessStat(state, process.ppid, 0, 0, 0, 0, 1, 4096)
    return sample("cpu", process, CpuUse(stat, Known(()), ()))


def log(*names: str, kind: str = "milestone", first: bool = False) -> Sample:
    events = tuple(LogEvent(kind=cast("Any", kind), name=name) for name in names)
    tail = LogTail(path="/l", writers=(100,), size_bytes=1, modified_wall_ns=1, events=events, first=first)
    return sample("log", None, tail)


def stacks(process: Process, number: int, taken_ns: int = 0) -> Sample:
    reading = Stacks((ThreadStack(process.key.pid, "main", False, False, number),))
    return sample("stacks", process, reading, taken_ns)


def stack(line: int) -> Stack:
    return (Frame("f", "f.py", line),)


def sample(probe: str, process: Process | None, value: Payload | Missing, taken_ns: int = 0) -> Sample:
    reading: Reading[Payload] = value if isinstance(value, Missing) else Known(value)
    return Sample(probe=probe, process=None if process is None else process.key, taken_ns=taken_ns, reading=reading)


def snapshot(index: int, *samples: Sample, processes: tuple[Process, ...] = (LAUNCHER, RANK)) -> Snapshot:
    at_ns = (index + 1) * 10**9
    return Snapshot(index=index, at_ns=at_ns, wall_ns=at_ns, processes=processes, samples=samples)


def alive(index: int) -> Snapshot:
    return snapshot(index, cpu(LAUNCHER), cpu(RANK))


class PlayedObserver:
    """Yields the rounds it was given; late: what finish() adds to the last one."""

    def __init__(self, rounds: Sequence[Snapshot], late: tuple[Sample, ...] = ()) -> None:
        self._rounds = rounds
        self._late = late
        self._last: Snapshot | None = None
        self.stopped = False
        self.pace = Pace()

    def rounds(self) -> Iterator[Snapshot]:
        for one in self._rounds:
            if self.stopped:
                return
            self._last = one
            yield one

    @property
    def last_index(self) -> int:
        assert self._last is not None
        return self._last.index

    def stop(self) -> None:
        self.stopped = True

    def finish(self) -> Snapshot | None:
        if self._last is None:
            return None
        last = self._last
        return snapshot(last.index, *last.samples, *self._late, processes=last.processes)


def attached(observer: PlayedObserver, record: Path | None = None) -> Attached:
    writer = None if record is None else Writer.open(record, HEADER)
    return Attached(LAUNCH, cast("Observer", observer), Tape(Ring(HEADER, 100), writer))
