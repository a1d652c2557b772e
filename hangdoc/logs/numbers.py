"""Numbers of lines as an editor counts them, for the few lines of a log that are told with theirs."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from hangdoc.logs.lines import LONGEST_PIECE_BYTES, colourless
from hangdoc.model.log import LogEvent

NUMBERED = frozenset({"crash", "error", "watchdog"})
"""Kinds of events that are told with their lines."""


class LineNumbers:
    """Counts line feeds of a log that streams by; carriage returns, as bars write them, end no line.

    Offsets are those of Stream: of whole lines, without colours.
    """

    def __init__(self) -> None:
        self._piece, self._begin, self._counted_to, self._feeds = b"", 0, 0, 0
        self._rest = b""

    def feed(self, piece: bytes) -> None:
        """Take the next bytes, as they stand in the log."""
        data = self._rest + piece
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not end and len(data) > LONGEST_PIECE_BYTES:
            data, end = data + b"\r", len(data) + 1  # Stream ends it there, too
        self._rest = data[end:]
        if end:
            self.number_of(self.end)
            self._piece, self._begin = colourless(data[:end]), self.end

    def number_of(self, offset: int) -> int:
        """Return the number of the line at an offset in the newest lines or beside them; offsets only grow."""
        until = min(offset - self._begin, len(self._piece))
        if until > self._counted_to - self._begin:
            self._feeds += self._piece.count(b"\n", max(0, self._counted_to - self._begin), until)
            self._counted_to = self._begin + until
        return self._feeds + 1

    @property
    def end(self) -> int:
        """The offset up to which whole lines have been taken."""
        return self._begin + len(self._piece)

    @property
    def reach(self) -> int:
        """The offset up to which all has been taken, the last line included, which nothing has ended yet."""
        return self.end + len(self._rest)


def numbered(events: tuple[LogEvent, ...], again: Iterable[bytes]) -> tuple[LogEvent, ...]:
    """Return events with their lines' numbers; again: the log's bytes once more, read as far as they are needed.

    Why a second pass: to count the lines of every log would take as long as to read it, and most have no failure.
    """
    wanted = sorted({event.offset for event in events if event.kind in NUMBERED}, reverse=True)
    found: dict[int, int] = {}
    lines, pieces = LineNumbers(), iter(again)
    while wanted and (piece := next(pieces, None)) is not None:
        lines.feed(piece)
        while wanted and wanted[-1] < lines.end:
            found[wanted[-1]] = lines.number_of(wanted[-1])
            wanted.pop()
    found |= {offset: lines.number_of(offset) for offset in reversed(wanted) if offset <= lines.reach}
    return tuple(
        replace(event, line=found[event.offset]) if event.kind in NUMBERED and event.offset in found else event
        for event in events
    )
