"""torchrun's own report of a failed job: which of its workers failed first, as one failure."""

from __future__ import annotations

from msgspec.structs import replace

from hangdoc.model.log import LogEvent

ROOT_CAUSE = "root-cause"
"""The failure that torchrun saw first."""

LONGEST_BYTES = 8 << 10
"""From a heading of the report to a worker's numbers. Arbitrary: a worker's entry may hold a traceback."""

_PARTS = frozenset({"elastic-failures", "elastic-root", "elastic-rank", "elastic-exit", "elastic-file"})


class ElasticReport:
    """Takes the lines of torchrun's report; the worker below "Root Cause" is the one that it saw first."""

    def __init__(self) -> None:
        self._head: LogEvent | None = None
        self._rank: LogEvent | None = None
        self._told: LogEvent | None = None

    def take(self, event: LogEvent) -> bool:
        """Take one line; tell whether it belongs to the report."""
        if event.name not in _PARTS:
            return False
        if event.name in {"elastic-root", "elastic-failures"}:
            self._head, self._rank = (event if event.name == "elastic-root" else None), None
        elif self._head is not None and event.offset - self._head.offset < LONGEST_BYTES:
            self._number(event)
        return True

    def _number(self, event: LogEvent) -> None:
        assert self._head is not None
        if event.name == "elastic-rank":
            self._rank = event
        elif event.name == "elastic-exit" and self._rank is not None:
            numbers = dict(self._rank.numbers) | dict(event.numbers)
            told = f"torchrun names rank {numbers['rank']:.0f} first, exited with code {numbers['code']:.0f}"
            self._told = replace(self._head, kind="crash", name=ROOT_CAUSE, text=told, numbers=numbers, rank={})
        elif event.name == "elastic-file" and self._told is not None:
            self._told = replace(self._told, text=f"{self._told.text} (the block names its error file)")

    def told(self) -> LogEvent | None:
        """Return the failure that the report names first; None when there was no report."""
        return self._told
