"""Log bytes in, events out: one line at a time through an engine's table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache

from hangdoc.model.engine import Engine, LogLine
from hangdoc.model.log import LogEvent

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
_TIME = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_LONGEST_LINE = 20_000
"""Characters of a line that are looked at: the longest lines an engine prints are its server_args, about 10,000."""


def events(data: bytes, engine: Engine, offset: int = 0, since: datetime | None = None) -> Iterator[LogEvent]:
    r"""Yield the events of a piece of a log that begins at byte offset and ends with a whole line.

    A carriage return ends a line as well: progress bars are written over with it, often with a log line glued on.
    since: lines with an older time stamp (in the log's own time zone) belong to an earlier launch that wrote to the
    same file; they and the lines without a time that follow them are left out.

    >>> from hangdoc.engines.sglang import ENGINE
    >>> log = b"0%|  | 0/23\r[2026-01-02 03:04:05 TP1] Load weight begin.\n"
    >>> [(event.name, event.rank, event.offset) for event in events(log, ENGINE)]
    [('load-weight-begin', {'tp': 1}, 12)]
    """
    is_older = False
    for start, raw in _pieces(data):
        line = _CONTROL.sub("", raw[:_LONGEST_LINE].decode("utf-8", "replace"))
        if since is not None and (stamp := _TIME.search(line)) is not None:
            is_older = datetime.fromisoformat(stamp.group(1)) < since
        if not is_older and (event := read_line(line, engine, offset + start)) is not None:
            yield event


def read_line(line: str, engine: Engine, offset: int = 0) -> LogEvent | None:
    """Return the event that one line stands for, or None when the engine's table does not know it."""
    prefix = engine.log_prefix.search(line) if engine.log_prefix is not None else None
    body = (line[prefix.end() :] if prefix is not None else line).strip()
    if not _any_of(engine).search(body):
        return None
    for known in engine.log_lines:
        if (match := known.pattern.search(body)) is not None:
            return _event(known, match, prefix, offset)
    return None


def _event(known: LogLine, match: re.Match[str], prefix: re.Match[str] | None, offset: int) -> LogEvent:
    ranks = prefix.groupdict() if prefix is not None else {}
    return LogEvent(
        kind=known.kind,
        name=known.name,
        phase=known.phase,
        rank={axis: int(number) for axis, number in ranks.items() if number is not None},
        offset=offset,
        text=known.text.format(**{name: value for name, value in match.groupdict().items() if value is not None}),
    )


@lru_cache
def _any_of(engine: Engine) -> re.Pattern[str]:
    """Return one pattern for all lines, since nearly every line of a long log is known to none of them."""
    alternatives = (re.sub(r"\(\?P<\w+>", "(?:", known.pattern.pattern) for known in engine.log_lines)
    return re.compile("|".join(alternatives) or r"(?!)")


def _pieces(data: bytes) -> Iterator[tuple[int, bytes]]:
    start = 0
    for end in (match.start() for match in re.finditer(rb"[\r\n]", data)):
        if end > start:
            yield start, data[start:end]
        start = end + 1
