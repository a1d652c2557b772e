"""Translates between the numbers a process knows its threads by and those /proc shows: PID namespaces differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from hangdoc_probes._reading import numbered, read


class Tids:
    """The threads of one process. nested: it lives in a PID namespace below ours; outer: own number -> /proc's.

    tids: those that are meant, listed already; without them all.
    """

    def __init__(self, proc: Path, pid: int, tids: Sequence[int] | None = None) -> None:
        self._task = f"{proc}/{pid}/task"
        tids = numbered(self._task) if tids is None else tids
        self.nested = len(numbers_of(f"{proc}/{pid}/status", b"NSpid:")) > 1
        self.outer: dict[int, int] = dict(self._translated(tids)) if self.nested else {tid: tid for tid in tids}
        self.inner = frozenset(self.outer)
        self._inner_of = {outer: inner for inner, outer in self.outer.items()} if self.nested else {}

    def inner_of(self, tid: int) -> int:
        """Return the number a thread knows itself by."""
        return self._inner_of.get(tid, 0) if self.nested else tid

    def _translated(self, tids: Sequence[int]) -> Iterator[tuple[int, int]]:
        for tid in tids:
            try:
                numbers = numbers_of(f"{self._task}/{tid}/status", b"NSpid:")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if numbers:
                yield numbers[-1], tid


def numbers_of(path: str, name: bytes) -> list[int]:
    """Return the numbers in a line of a status file; none when it has no such line."""
    for line in read(path).split(b"\n"):
        if line.startswith(name):
            return [int(field) for field in line.split()[1:]]
    return []
