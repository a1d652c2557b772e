"""What a log says, as events: milestones reached, crash lines, batches served."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Phase: TypeAlias = Literal[
    "launch",
    "rendezvous",
    "weight-load",
    "memory-pool",
    "jit-compile",
    "graph-capture",
    "warmup",
    "ready",
    "serving",
    "shutdown",
    "unknown",
]
"""Least advanced first; "unknown" last."""

LogEventKind: TypeAlias = Literal["milestone", "crash", "watchdog", "batch", "progress"]


class LogEvent(Struct, frozen=True, kw_only=True):
    """One line of a log that an engine's table knows.

    name: the table entry ("load-weight-begin"); phase: the phase this line opens ("unknown" for lines that open
    none); rank: as printed in the line's prefix; offset: byte offset of the line in the log;
    text: the table's own wording with the numbers of the line, never free text of the line.
    """

    kind: LogEventKind
    name: str
    phase: Phase = "unknown"
    rank: dict[str, int] = {}
    offset: int = 0
    text: str = ""


class LogTail(Struct, frozen=True, tag="log"):
    """The log probe's reading of one log file: the events that are new since the last reading.

    path: the file; writers: pids of the members that hold it open for writing; size_bytes and modified_wall_ns at
    the reading; first: this reading began at the start of the (available part of the) file.
    """

    path: str
    writers: tuple[int, ...]
    size_bytes: int
    modified_wall_ns: int
    events: tuple[LogEvent, ...]
    first: bool = False
