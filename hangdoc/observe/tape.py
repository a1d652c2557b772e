"""Where rounds go: into the ring that is reasoned about and, if asked for, into a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hangdoc.model.snapshot import Snapshot
from hangdoc.model.stack import Stack
from hangdoc.observe.ring import Ring
from hangdoc.trace.records import Trace


class Recording(Protocol):
    """Takes rounds for a file; stacks: the table that the round refers to."""

    def add(self, snapshot: Snapshot, stacks: Sequence[Stack]) -> None:
        """Append one round."""


class Tape:
    """Takes each round once. The last one is held back from the file, since late readings may still join it."""

    def __init__(self, ring: Ring, writer: Recording | None = None) -> None:
        self.ring = ring
        self.rounds = 0
        self._writer = writer
        self._held: Snapshot | None = None

    def add(self, snapshot: Snapshot) -> None:
        """Take one round."""
        self._write_held()
        self.ring.add(snapshot)
        self._held = snapshot
        self.rounds += 1

    def finish(self, last: Snapshot | None) -> None:
        """Take the last round again, with what arrived after it, and complete the file."""
        if last is not None:
            self.again(last)
        self._write_held()

    def again(self, last: Snapshot) -> None:
        """Take the last round again, with what arrived after it."""
        if self.rounds:
            self.ring.add(last)
            self._held = last

    def trace(self, rounds: int | None = None) -> Trace:
        """Return the trace that is reasoned about; rounds: see Ring.trace."""
        return self.ring.trace(rounds)

    def _write_held(self) -> None:
        if self._writer is not None and self._held is not None:
            self._writer.add(self._held, self.ring.stacks)
        self._held = None
