"""Counts how many answers failed in a row at the end of a log: of requests, and of health checks."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from hangdoc.model.log import LogEvent

_SERVER_ERROR = 500
"""HTTP's first status by which a server says that it is to blame itself."""

_ROWS = (
    frozenset({"generate-done", "request-failed"}),
    frozenset({"generate-done", "health-answered", "health-refused"}),
)
"""What makes a row: requests, which no health check interrupts; health checks, which an answered request does."""


def counted(found: Sequence[LogEvent]) -> list[LogEvent]:
    """Return the lines of a log's end, where the newest answer of a row says how many up to it failed."""
    told = list(found)
    for names in _ROWS:
        row = [at for at, event in enumerate(told) if event.name in names]
        good = [place for place, at in enumerate(row) if told[at].numbers.get("status", 0) < _SERVER_ERROR]
        failed = len(row) - (good[-1] + 1 if good else 0)
        if failed:
            last = told[row[-1]]
            told[row[-1]] = replace(last, numbers={**last.numbers, "in_a_row": float(failed)})
    return told
