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

LogEventKind: TypeAlias = Literal["milestone", "crash", "error", "watchdog", "batch", "progress"]
"""crash: a line that only a failure of a process prints; error: one that a server may survive."""


HEALTH_CHECKS = frozenset({"health-answered", "health-refused"})
"""Names of lines by which a server answers whether it is well: no work of its own, so that they are no progress."""

REVIEWS = frozenset({"throughput", "throughput-idle", "throughput-none"})
"""Names of lines that say what was done in the seconds before them: of work, but not that it still goes on. vLLM's API
server prints one each 10 s (VLLM_LOG_STATS_INTERVAL), and the first one after a standstill tells of the time before."""


class LogEvent(Struct, frozen=True, kw_only=True):
    """One line of a log that an engine's table knows.

    name: the table entry ("load-weight-begin"); phase: the phase this line opens ("unknown" for lines that open
    none); rank: as printed in the line's prefix; offset: byte offset of the line in the log;
    text: the table's own wording with the numbers of the line, never free text of the line;
    stamp: the line's time as the log's own clock printed it, without a zone ("2026-01-02 03:04:05", "01-02 03:04:05",
    "03:04:05"; "" for a line without one); victim: who prints it suffers from somebody else's failure;
    numbers: of the line: of a bar done, total, elapsed_s, left_s; of a failure pid, code, or rank, whom it speaks of;
    of a batch that a watchdog prints batch, its requests, and request, a checksum of the first one's id;
    of the newest answer of a kind in_a_row, how many up to it failed, each of them;
    line: its number in its file, counted from 1 (0: not counted).
    """

    kind: LogEventKind
    name: str
    phase: Phase = "unknown"
    rank: dict[str, int] = {}
    offset: int = 0
    text: str = ""
    stamp: str = ""
    victim: bool = False
    numbers: dict[str, float] = {}
    line: int = 0


class LogTail(Struct, frozen=True, tag="log"):
    """The log probe's reading of one log file: the events that are new since the last reading.

    path: the file; writers: pids of the members that hold it open for writing; size_bytes and modified_wall_ns at
    the reading; first: this reading began at the start of the (available part of the) file;
    lines: how many it had, or had when it became ready (0: not counted); last_stamp: the newest time that any line of
    it has, known or not;
    until_known: somebody watched until the reading that nothing more came. Of a file by itself nobody knows: its
    server may have ended, and a copy is as old as its copying.
    """

    path: str
    writers: tuple[int, ...]
    size_bytes: int
    modified_wall_ns: int
    events: tuple[LogEvent, ...]
    first: bool = False
    lines: int = 0
    last_stamp: str = ""
    until_known: bool = True
