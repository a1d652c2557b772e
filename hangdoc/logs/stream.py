"""Reads one log as it streams by, in flat memory: pieces of any size in, a journal and the log's end out."""

from __future__ import annotations

import re
from dataclasses import dataclass

from msgspec.structs import replace

from hangdoc.logs.journal import ENDLESS, Journal
from hangdoc.logs.lines import events, text_of
from hangdoc.logs.scan import Lines, lines_for
from hangdoc.logs.stamps import stamp_of
from hangdoc.model.engine import Engine
from hangdoc.model.log import LogEvent

TAIL_BYTES = 256 << 10
"""The log's end, in which every kind of line is looked for. Arbitrary: some 1,500 lines."""

LONGEST_PIECE_BYTES = 1 << 20
"""A line that is longer is cut here: no engine prints one, and the memory must stay flat. Arbitrary."""

_KEPT_AT_END = 200
"""Batch and progress lines kept of the log's end. Arbitrary: more than a start's last progress bar has."""


@dataclass(frozen=True)
class LogText:
    """What one log says, before it becomes a reading.

    last_stamp: the newest time of its end, whoever wrote it; lines: how many it has.
    """

    events: tuple[LogEvent, ...]
    lines: int
    size_bytes: int
    last_stamp: str


class Stream:
    """One log being read. fast: use the multi-pattern engine where it is installed."""

    def __init__(self, engine: Engine, launch: int | None = None, *, fast: bool = True) -> None:
        self.journal = Journal(engine, launch)
        self.size_bytes = 0
        self._engine = engine
        self._lines_of: Lines = lines_for(engine, fast=fast)
        self._rest = b""
        self._tail = b""
        self._tail_end = 0
        self._lines = 0

    def feed(self, piece: bytes) -> None:
        """Take the next bytes."""
        self.size_bytes += len(piece)
        if b"\r" in piece:
            piece = piece.replace(b"\r", b"\n")
        data = self._rest + piece
        whole = data.rfind(b"\n") + 1
        self._rest = data[whole:]
        if len(self._rest) > LONGEST_PIECE_BYTES:
            whole, self._rest = len(data), b""
            data += b"\n"
        self._take(data[:whole], self.size_bytes - len(self._rest) - whole)

    def finish(self) -> LogText:
        """Take the line that nothing ended, look at the log's end in full, and return all."""
        if self._rest:
            self._take(self._rest + b"\n", self.size_bytes - len(self._rest))
            self._rest = b""
        begin = self._tail_end - len(self._tail)
        if not self.journal.is_over:
            endless = [event for event in events(self._tail, self._engine, begin) if event.kind in ENDLESS]
            for event in self._of_this_launch(endless)[-_KEPT_AT_END:]:
                self.journal.add(event)
        return LogText(self._timed(), self._lines, self.size_bytes, self._last_stamp())

    def _take(self, data: bytes, offset: int) -> None:
        self._lines += data.count(b"\n")
        self._tail_end = offset + len(data)
        self._tail = (self._tail + data[-TAIL_BYTES:])[-TAIL_BYTES:]
        if self.journal.is_over:
            return
        for start, end in self._lines_of(data):
            event = self.journal.line(text_of(data[start:end]), offset + start)
            if event is not None and event.name == "server-args":
                self._lines = data.count(b"\n", start)

    def _of_this_launch(self, found: list[LogEvent]) -> list[LogEvent]:
        begins = [event.offset for event in self.journal.events() if event.name == "server-args"]
        return [event for event in found if not begins or event.offset >= begins[0]]

    def _timed(self) -> tuple[LogEvent, ...]:
        """Give the events that came without a time that of the last one before: bars, tracebacks, C++ messages."""
        found, stamp = [], ""
        unique = {(event.offset, event.name): event for event in self.journal.events()}
        for event in sorted(unique.values(), key=lambda event: event.offset):
            stamp = event.stamp or stamp
            found.append(event if event.stamp or not stamp else replace(event, stamp=stamp))
        return tuple(found)

    def _last_stamp(self) -> str:
        for raw in reversed(re.split(rb"\n", self._tail)):
            if stamp := stamp_of(text_of(raw)):
                return stamp
        return ""
