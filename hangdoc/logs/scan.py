"""Finds the few lines of a long log that mean something, fast: a serving engine prints the same lines without end."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeAlias

from hangdoc.logs.lines import loose
from hangdoc.model.engine import Engine

Lines: TypeAlias = Callable[[bytes], Iterator[tuple[int, int]]]
"""Yields (start, end) of the lines of a piece that may mean something; the piece ends with a line feed."""

OTHER_ANCHORS = (
    rb"Process \d+: ",
    rb"Thread (?:0x[0-9a-f]+|\d+) \(",
    rb"^\|",
    rb"\(\S+:\d+\)\r?$",
    rb"\(\S+\.so[.\d]*\)\r?$",
    rb"(?i:sglang|vllm)\s*(?:==|:|=)\s*v?\d",
    rb"Python v3",
)
"""Lines that belong to dumps, tables and lists of versions; a rough net, each is read again."""


def lines_for(engine: Engine, *, fast: bool = True) -> Lines:
    """Return what finds the lines; fast: with hyperscan where it is installed (hangdoc[fast])."""
    scan = _hyperscan(engine) if fast else None
    return scan or _without_dull(engine)


def is_fast(engine: Engine) -> bool:
    """Tell whether the multi-pattern engine is there."""
    return _hyperscan(engine) is not None


@lru_cache
def _without_dull(engine: Engine) -> Lines:
    """Return the finder that skips the lines a serving engine prints without end; all others are read.

    Rule: a search for a line feed that no dull line follows. Why it works: Python's re looks for the literal with
    memchr, so that a dull line costs 0.2 us. Fails (slowly, never wrongly) on logs of other programs.
    """
    dull = engine.dull
    at_start = re.compile(dull or rb"(?!)")
    other = re.compile(rb"\n(?!\n|" + (dull or rb"(?!)") + rb"|$)")

    def lines(data: bytes) -> Iterator[tuple[int, int]]:
        if data and at_start.match(data) is None:
            yield 0, data.find(b"\n")
        for match in other.finditer(data, 0, len(data) - 1):
            start = match.end()
            yield start, data.find(b"\n", start)

    return lines


@lru_cache
def _hyperscan(engine: Engine) -> Lines | None:
    try:
        import hyperscan  # noqa: PLC0415 - an optional extra
    except ImportError:
        return None
    expressions = expressions_of(engine)
    flags = [hyperscan.HS_FLAG_MULTILINE | hyperscan.HS_FLAG_ALLOWEMPTY] * len(expressions)
    database = hyperscan.Database()
    database.compile(expressions=list(expressions), ids=list(range(len(expressions))), flags=flags)

    def lines(data: bytes) -> Iterator[tuple[int, int]]:
        ends: list[int] = []
        database.scan(data, match_event_handler=lambda _i, _from, to, _flags, _context: ends.append(to))
        return lines_around(data, ends)

    return lines


def lines_around(data: bytes, ends: list[int]) -> Iterator[tuple[int, int]]:
    """Yield each line that one of the matches ends in, once."""
    ends.sort()
    position = 0
    while position < len(ends):
        at = max(0, ends[position] - 1)
        start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
        yield start, end
        position = max(position + 1, bisect_left(ends, end + 1))


def expressions_of(engine: Engine) -> tuple[bytes, ...]:
    """Return the patterns that the multi-pattern engine looks for: those of lines that do not come without end.

    It knows no look-ahead: without one a pattern finds more lines, and each is read again.
    """
    wanted = [loose(line) for line in engine.log_lines if line.kind not in ("batch", "progress")]
    plain = [re.sub(r"\(\?![^()]*(?:\([^()]*\)[^()]*)*\)", "", pattern) for pattern in wanted]
    return (*dict.fromkeys(pattern.removesuffix("$").encode() for pattern in plain), *OTHER_ANCHORS)
