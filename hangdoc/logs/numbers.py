"""Numbers of lines as an editor counts them, for the few lines of a log that are told with theirs."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from hangdoc.model.log import LogEvent

NUMBERED = frozenset({"crash", "error", "watchdog"})
"""Kinds of events that are told with their lines."""

FARTHEST_NUMBERED_BYTES = 256 << 20
"""Where the lines of a file are not counted any more. Measured: to count takes as long as to read, 0.45 s a gigabyte;
and nobody opens such a file at a number."""


class LineNumbers:
    """Counts line feeds of a log that streams by; carriage returns, as bars write them, end no line."""

    def __init__(self) -> None:
        self._piece, self._begin, self._counted_to, self._feeds = b"", 0, 0, 0

    def feed(self, piece: bytes) -> None:
        """Take the next bytes, as they stand in the log."""
        end = self._begin + len(self._piece)
        self.number_of(end)
        self._piece, self._begin = piece, end

    def number_of(self, offset: int) -> int:
        """Return the number of the line at an offset in the newest piece, or just before it; offsets only grow."""
        until = min(offset - self._begin, len(self._piece))
        if until > self._counted_to - self._begin:
            self._feeds += self._piece.count(b"\n", max(0, self._counted_to - self._begin), until)
            self._counted_to = self._begin + until
        return self._feeds + 1

    @property
    def end(self) -> int:
        """The offset up to which the log has been taken."""
        return self._begin + len(self._piece)


def numbered(events: tuple[LogEvent, ...], again: Iterable[bytes]) -> tuple[LogEvent, ...]:
    """Return events with their lines' numbers; again: the log's bytes once more, read as far as they are needed.

    Why a second pass: to count the lines of every log would take as long as to read it, and most have no failure.
    """
    found = numbers_of({event.offset for event in events if event.kind in NUMBERED}, again)
    return tuple(
        replace(event, line=found[event.offset]) if event.kind in NUMBERED and event.offset in found else event
        for event in events
    )


def numbers_of(offsets: Iterable[int], again: Iterable[bytes]) -> dict[int, int]:
    """Return the numbers of the lines at these offsets; those that stand too far have none."""
    wanted = sorted((offset for offset in offsets if offset < FARTHEST_NUMBERED_BYTES), reverse=True)
    found: dict[int, int] = {}
    lines, pieces = LineNumbers(), iter(again)
    while wanted and (piece := next(pieces, None)) is not None:
        lines.feed(piece)
        while wanted and wanted[-1] < lines.end:
            found[wanted[-1]] = lines.number_of(wanted[-1])
            wanted.pop()
    return found
