"""Reads one log as it streams by, in flat memory: pieces of any size in, a journal and the log's end out."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from hangdoc.logs.anchors import may_be_known
from hangdoc.logs.answers import counted
from hangdoc.logs.bars import timed
from hangdoc.logs.journal import ENDLESS, Journal
from hangdoc.logs.lines import WithoutColours, colourless, decoded, pieces, read_line, text_of
from hangdoc.logs.moment import End
from hangdoc.logs.numbers import LineNumbers
from hangdoc.logs.scan import Lines, lines_for
from hangdoc.logs.stamps import stamp_of, zone_of
from hangdoc.model.engine import Engine
from hangdoc.model.log import HEALTH_CHECKS, LogEvent

TAIL_BYTES = 256 << 10
"""The log's end, in which every kind of line is looked for. Arbitrary: some 1,500 lines."""

LONGEST_PIECE_BYTES = 1 << 20
"""A line that is longer is cut here: no engine prints one, and the memory must stay flat. Arbitrary."""

MOST_PIECES = 1_000
"""Pieces of the tail before they are joined: standard input may give a line at a time. Arbitrary."""

_CLOCK = re.compile(rb"\d\d:\d\d:\d\d")
"""What stands in every time."""

_KEPT_AT_END = 200
"""Batch and progress lines kept of the log's end. Arbitrary: more than a start's last progress bar has."""


@dataclass(frozen=True)
class LogText:
    """What one log says, before it becomes a reading.

    end: the newest time of its end, whoever wrote it; lines: how many it has, or had when it became ready.
    """

    events: tuple[LogEvent, ...]
    lines: int
    size_bytes: int
    end: End

    @property
    def last_stamp(self) -> str:
        """The newest time of its end."""
        return self.end.stamp


class Stream:
    """One log being read. fast: use the multi-pattern engine where it is installed; numbers: counts lines, if given."""

    def __init__(
        self, engine: Engine, launch: int | None = None, *, fast: bool = True, numbers: LineNumbers | None = None
    ) -> None:
        self._numbers = numbers
        self.journal = Journal(engine, launch, (lambda _offset: 0) if numbers is None else numbers.number_of)
        self.size_bytes = 0
        self._engine = engine
        self._lines_of: Lines = lines_for(engine, fast=fast)
        self._rest = b""
        self._newest: list[tuple[bytes, int, int]] = []
        self._tail_end = 0
        self._lines = 0
        self._counting = True

    def feed(self, piece: bytes) -> None:
        """Take the next bytes; nothing of a piece is copied but its last, unfinished line."""
        if self._numbers is not None:
            self._numbers.feed(piece)
        if b"\r" in piece:
            piece = piece.replace(b"\r", b"\n")
        self.size_bytes += len(piece)
        first, whole = piece.find(b"\n") + 1, piece.rfind(b"\n") + 1
        if not whole:
            self._unfinished(piece)
            return
        if self._rest:
            line = self._rest + piece[:first]
            self._take(line, 0, len(line))
        else:
            first = 0
        self._rest = piece[whole:]
        if first < whole:
            self._take(piece, first, whole)

    def _unfinished(self, piece: bytes) -> None:
        self._rest += piece
        if len(self._rest) > LONGEST_PIECE_BYTES:
            line, self._rest = self._rest + b"\n", b""
            self._take(line, 0, len(line))

    def finish(self) -> LogText:
        """Take the line that nothing ended, look at the log's end in full, and return all."""
        if self._rest:
            line, self._rest = self._rest + b"\n", b""
            self._take(line, 0, len(line))
        self.journal.close()
        tail = b"".join(data[begin:end] for data, begin, end in self._newest)[-TAIL_BYTES:]
        if not self.journal.is_over:
            every = counted(self._of_this_launch(_endless(tail, self._engine, self._tail_end - len(tail))))
            for event in [one for one in every if one.name not in HEALTH_CHECKS][-_KEPT_AT_END:]:
                self.journal.add(event)
            for event in [one for one in every if one.name in HEALTH_CHECKS][-1:]:
                self.journal.add(event)
        found = timed(self.journal.events())
        return LogText(found, self._lines, self.size_bytes, _end_of(tail, found))

    def _take(self, data: bytes, begin: int, end: int) -> None:
        """Take the whole lines in data[begin:end]."""
        shift = self._tail_end - begin
        self._tail_end += end - begin
        self._keep(data, begin, end)
        if self.journal.is_over:
            return
        place_of: Callable[[int], int] = shift.__add__
        if data.find(b"\x1b", begin, end) >= 0:
            raw, data = data[begin:end], colourless(data[begin:end])
            place_of = WithoutColours(raw, shift + begin).place_of
            begin, end = 0, len(data)
        counted_from = begin
        journal = self.journal
        for start, stop in self._lines_of(data, begin, end, lambda at: journal.follows(place_of(at))):
            event = journal.line(decoded(data[start:stop]), place_of(start))
            if event is not None and event.name == "server-args":
                self._lines, counted_from, self._counting = 0, start, True
            elif event is not None and event.name == "ready" and self._counting:
                self._lines += data.count(b"\n", counted_from, stop + 1)
                self._counting = False
        if self._counting:
            self._lines += data.count(b"\n", counted_from, end)

    def _keep(self, data: bytes, begin: int, end: int) -> None:
        """Keep as many of the newest pieces as the tail needs; they are put together only once."""
        self._newest.append((data, begin, end))
        kept = sum(stop - start for _, start, stop in self._newest)
        while kept - (self._newest[0][2] - self._newest[0][1]) >= TAIL_BYTES:
            _, start, stop = self._newest.pop(0)
            kept -= stop - start
        if len(self._newest) > MOST_PIECES:
            self._newest = [(b"".join(data[begin:end] for data, begin, end in self._newest), 0, kept)]

    def _of_this_launch(self, found: list[LogEvent]) -> list[LogEvent]:
        begins = [event.offset for event in self.journal.events() if event.name == "server-args"]
        return [event for event in found if not begins or event.offset >= begins[0]]


def _endless(tail: bytes, engine: Engine, offset: int) -> list[LogEvent]:
    """Return the events of the kinds that come without end; other lines are told from them before they are read."""
    only = _of_endless_kinds(engine)
    if not may_be_known(colourless(tail).decode("utf-8", "replace"), only):
        return []
    lines = ((start, text_of(raw)) for start, raw in pieces(tail))
    events = [read_line(line, engine, offset + start) for start, line in lines if may_be_known(line, only)]
    return [event for event in events if event is not None and event.kind in ENDLESS]


@lru_cache
def _of_endless_kinds(engine: Engine) -> Engine:
    return dataclasses.replace(engine, log_lines=tuple(line for line in engine.log_lines if line.kind in ENDLESS))


def _end_of(tail: bytes, events: tuple[LogEvent, ...]) -> End:
    """Return the newest time of a log's end; a bar at the end without one tells it by the time it took so far."""
    bar = events[-1].stamp if events and events[-1].kind == "progress" else ""
    is_last = True
    for raw in reversed(tail.split(b"\n")) if _CLOCK.search(colourless(tail)) is not None else ():
        line = text_of(raw)
        if stamp := stamp_of(line):
            newest = bar if len(bar) == len(stamp) and not is_last else stamp
            return End(newest, zone_of(line), is_exact=is_last)
        is_last = is_last and not line.strip()
    return End(bar, None, is_exact=False)
