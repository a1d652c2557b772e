"""The trace in memory, and the lines its file is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from hangdoc.model.patience import Stage
from hangdoc.model.process import Launch
from hangdoc.model.reading import Known
from hangdoc.model.snapshot import Snapshot
from hangdoc.model.stack import Stack, Stacks

SCHEMA = 1
"""Version of the trace file; a reader takes this one and older ones, through migrate.

Raise it when a reader of the present version could not read the file (a new payload, a field without a default) or
would misread it (a field with a new meaning), and add the step to migrate. A new field with a default needs neither.
"""

Redaction: TypeAlias = Literal["tokens", "none"]


class Header(Struct, frozen=True, kw_only=True, tag="header", tag_field="type"):
    """What does not change while recording; the first line of the file.

    host: the host's name (a token in a redacted trace); machine: platform.machine(); cpus: CPUs hangdoc may use;
    started_wall_ns: Unix time of the first round; patience_s: what the user set instead of the table's, in seconds;
    redaction: "tokens" for what no allow-list knows, or "none", when the user asked for names as they are.
    """

    schema: int = SCHEMA
    hangdoc: str
    host: str
    machine: str
    cpus: int
    clock_ticks_per_s: int
    started_wall_ns: int
    interval_s: float
    launch: Launch
    patience_s: dict[Stage, float] = {}
    redaction: Redaction = "tokens"


class Trace(Struct, frozen=True, kw_only=True):
    """A whole recording. complete: the end record was there; a cut file is read up to the cut.

    skipped: records of a kind that this hangdoc does not know, and that it passed over.
    """

    header: Header
    stacks: tuple[Stack, ...]
    snapshots: tuple[Snapshot, ...]
    complete: bool = True
    skipped: int = 0


class StackLine(Struct, frozen=True, tag="stack", tag_field="type"):
    """One entry of the table of stacks; ids count from 0, each entry comes before the first snapshot that uses it."""

    id: int
    frames: Stack


class SnapshotLine(Struct, frozen=True, tag="snapshot", tag_field="type"):
    """One round."""

    snapshot: Snapshot


class EndLine(Struct, frozen=True, tag="end", tag_field="type"):
    """The last line of a recording that was not cut; snapshots: how many there are."""

    snapshots: int


class UnknownLine(Struct, frozen=True):
    """A record of a kind that a later hangdoc added without a new schema: nothing that was there before rests on it."""


Line: TypeAlias = Header | StackLine | SnapshotLine | EndLine


def stacks_needed(snapshot: Snapshot) -> int:
    """Return how many entries of the table of stacks the snapshot needs: the highest number it refers to, plus 1."""
    needed = 0
    for sample in snapshot.samples:
        if isinstance(sample.reading, Known) and isinstance(sample.reading.value, Stacks):
            needed = max(needed, 1 + max((thread.stack for thread in sample.reading.value.threads), default=-1))
    return needed


def stack_lines(stacks: Sequence[Stack], start: int, stop: int) -> Iterator[StackLine]:
    """Yield the entries start to stop of the table of stacks."""
    for number in range(start, stop):
        yield StackLine(number, stacks[number])


def lines_of(trace: Trace) -> Iterator[Line]:
    """Yield the lines of a trace's file in their order."""
    yield trace.header
    written = 0
    for snapshot in trace.snapshots:
        needed = max(written, stacks_needed(snapshot))
        yield from stack_lines(trace.stacks, written, needed)
        yield SnapshotLine(snapshot)
        written = needed
    yield from stack_lines(trace.stacks, written, len(trace.stacks))
    if trace.complete:
        yield EndLine(len(trace.snapshots))


class DamagedError(Exception):
    """Bytes or lines that no trace is made of; the reason, for the reader's one clear line."""


class Assembly:
    """Puts the lines of a file together again; the header is the caller's."""

    def __init__(self) -> None:
        self.stacks: list[Stack] = []
        self.snapshots: list[Snapshot] = []
        self.complete = False
        self.skipped = 0

    def take(self, line: Line | UnknownLine) -> None:
        """Enter one line; DamagedError when it cannot follow the ones before it."""
        if self.complete:
            raise DamagedError("a record follows the end record")
        match line:
            case StackLine(id=number, frames=frames):
                self._expect(number == len(self.stacks), f"stack {number} follows {len(self.stacks)} stacks")
                self.stacks.append(frames)
            case SnapshotLine(snapshot=snapshot):
                self._expect(stacks_needed(snapshot) <= len(self.stacks), "a snapshot refers to an absent stack")
                self.snapshots.append(snapshot)
            case EndLine(snapshots=count):
                self._expect(count == len(self.snapshots), f"the end record speaks of {count} snapshots")
                self.complete = True
            case UnknownLine():
                self.skipped += 1
            case Header():
                raise DamagedError("it has a second header")

    def trace(self, header: Header) -> Trace:
        """Return what was taken as a trace."""
        return Trace(
            header=header,
            stacks=tuple(self.stacks),
            snapshots=tuple(self.snapshots),
            complete=self.complete,
            skipped=self.skipped,
        )

    @staticmethod
    def _expect(condition: bool, otherwise: str) -> None:
        if not condition:
            raise DamagedError(otherwise)
