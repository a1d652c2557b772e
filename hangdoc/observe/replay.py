"""A recorded observation, taken up again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from hangdoc.errors import HangdocError
from hangdoc.model.patience import Stage
from hangdoc.trace.reader import read
from hangdoc.trace.records import Trace


def read_trace(path: Path, patience_s: Mapping[Stage, float] | None = None) -> Trace:
    """Return a trace that can be diagnosed; one that was cut before its first round was whole cannot.

    patience_s: seconds of patience that count before what the recording was made with.
    """
    trace = read(path)
    if not trace.snapshots:
        raise HangdocError(f"{path} was cut before its first round was whole", "record again")
    if not patience_s:
        return trace
    header = replace(trace.header, patience_s={**trace.header.patience_s, **patience_s})
    return replace(trace, header=header)
