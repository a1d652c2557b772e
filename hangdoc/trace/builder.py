"""The trace while it grows in memory: what a probe interns into, what watch looks at each second."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import overload

from hangdoc.model.snapshot import Snapshot
from hangdoc.model.stack import Stack
from hangdoc.trace.records import Header, Trace


class StackTable(Sequence[Stack]):
    """The table of stacks: equal stacks get one number. Probes that run beside the clock may intern too."""

    def __init__(self) -> None:
        self._stacks: list[Stack] = []
        self._numbers: dict[Stack, int] = {}
        self._lock = Lock()

    def intern(self, stack: Stack) -> int:
        """Return the number of the stack, entering it when it is new."""
        with self._lock:
            number = self._numbers.setdefault(stack, len(self._stacks))
            if number == len(self._stacks):
                self._stacks.append(stack)
            return number

    @overload
    def __getitem__(self, index: int) -> Stack: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Stack]: ...
    def __getitem__(self, index: int | slice) -> Stack | Sequence[Stack]:
        return self._stacks[index]

    def __len__(self) -> int:
        return len(self._stacks)

    def __iter__(self) -> Iterator[Stack]:
        return iter(tuple(self._stacks))


class TraceBuilder:
    """A trace in memory. Give `intern` to the probes' Context, `add` each round, ask for `trace()` at any time."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self.stacks = StackTable()
        self._snapshots: list[Snapshot] = []

    def intern(self, stack: Stack) -> int:
        """Return the number of the stack in this trace's table."""
        return self.stacks.intern(stack)

    def add(self, snapshot: Snapshot) -> None:
        """Append one round."""
        self._snapshots.append(snapshot)

    def trace(self) -> Trace:
        """Return the trace so far; the records are shared, only the two outer tuples are new."""
        return Trace(header=self.header, stacks=tuple(self.stacks), snapshots=tuple(self._snapshots))
