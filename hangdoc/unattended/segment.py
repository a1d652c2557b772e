"""One trace in the folder of an unattended watch: a part of the rolling window, or evidence."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from hangdoc.errors import HangdocError
from hangdoc.model.reading import Known
from hangdoc.model.snapshot import Sample, Snapshot
from hangdoc.model.stack import Stack, Stacks
from hangdoc.trace.records import Header, Trace
from hangdoc.trace.writer import Writer


class Segment:
    """One trace in the folder; it numbers its stacks itself, so that it holds none that belong to older ones."""

    def __init__(self, path: Path, header: Header) -> None:
        self.rounds = 0
        self._writer = Writer.open(path, header)
        self._numbers: dict[int, int] = {}
        self._stacks: list[Stack] = []

    def add(self, snapshot: Snapshot, stacks: Sequence[Stack]) -> None:
        """Append one round; stacks: the table that it refers to."""
        samples = tuple(self._renumbered(sample, stacks) for sample in snapshot.samples)
        self._writer.add(replace(snapshot, samples=samples), self._stacks)
        self.rounds += 1

    def close(self, *, durable: bool = False) -> None:
        """Complete the file; durable: see Writer.close."""
        self._writer.close(durable=durable)

    def abandon(self) -> None:
        """Let go of the file as it is, after a failure."""
        with suppress(HangdocError):
            self._writer.close()

    def _renumbered(self, sample: Sample, stacks: Sequence[Stack]) -> Sample:
        value = sample.reading.value if isinstance(sample.reading, Known) else None
        if not isinstance(value, Stacks):
            return sample
        threads = tuple(replace(one, stack=self._number(one.stack, stacks)) for one in value.threads)
        return replace(sample, reading=Known(replace(value, threads=threads)))

    def _number(self, number: int, stacks: Sequence[Stack]) -> int:
        if number not in self._numbers:
            self._numbers[number] = len(self._stacks)
            self._stacks.append(stacks[number])
        return self._numbers[number]


def write_compact(path: Path, trace: Trace) -> None:
    """Write a trace as one file, round by round, so that what was written before a crash can be read; durable."""
    segment = Segment(path, trace.header)
    try:
        for snapshot in trace.snapshots:
            segment.add(snapshot, trace.stacks)
    except BaseException:
        segment.abandon()
        raise
    segment.close(durable=True)
