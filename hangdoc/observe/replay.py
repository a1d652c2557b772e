"""A recorded observation, taken up again."""

from __future__ import annotations

from pathlib import Path

from hangdoc.errors import HangdocError
from hangdoc.trace.reader import read
from hangdoc.trace.records import Trace


def read_trace(path: Path) -> Trace:
    """Return a trace that can be diagnosed; one that was cut before its first round was whole cannot."""
    trace = read(path)
    if not trace.snapshots:
        raise HangdocError(f"{path} was cut before its first round was whole", "record again")
    return trace
