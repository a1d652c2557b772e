"""Finds the few lines of a long log that mean something, fast: a serving engine prints the same lines without end."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

from hangdoc.logs.anchors import anchors_of
from hangdoc.logs.journal import OTHER_TEXTS
from hangdoc.model.engine import Engine

Follow: TypeAlias = Callable[[int], bool]
"""Given where a line begins, tells whether a stack dump is open to which it may belong."""

Lines: TypeAlias = Callable[[bytes, int, int, Follow], Iterator[tuple[int, int]]]
"""Given (data, begin, end, follow), yields (start, end) of the lines of data[begin:end] that may mean something; that
part consists of whole lines. Every finder yields all lines that hold one of the texts, and those that follow() asks
for; none yields empty or dull ones."""


def lines_for(engine: Engine, *, fast: bool = True) -> Lines:
    """Return what finds the lines; fast: with hyperscan where it is installed (hangdoc[fast])."""
    scan = with_hyperscan(engine) if fast else None
    return scan or (without_dull(engine) if engine.dull else one_by_one(engine))


@lru_cache
def without_dull(engine: Engine) -> Lines:
    """Return the finder that skips the lines a serving engine prints without end; all others are read.

    Rule: a search for a line feed that no dull line follows. Why it works: Python's re looks for the literal with
    memchr, so that a dull line costs 0.2 us. Fails (slowly, never wrongly) on logs of other programs.
    """
    at_start = _no_use(engine)
    other = re.compile(rb"\n(?!" + at_start.pattern + rb"|$)")

    def lines(data: bytes, begin: int, end: int, follow: Follow) -> Iterator[tuple[int, int]]:
        del follow  # every line of a dump is one that is not dull
        if at_start.match(data, begin) is None:
            yield begin, data.find(b"\n", begin)
        for match in other.finditer(data, begin, end - 1):
            start = match.end()
            yield start, data.find(b"\n", start)

    return lines


@lru_cache
def one_by_one(engine: Engine) -> Lines:
    """Return the finder that looks for one text after the other: for programs that print no dull lines."""
    texts = [text.encode() for text in texts_of(engine)]
    no_use = _no_use(engine)

    def lines(data: bytes, begin: int, end: int, follow: Follow) -> Iterator[tuple[int, int]]:
        ends = []
        part = data if (begin, end) == (0, len(data)) else data[begin:end]
        for text in filter(part.__contains__, texts):  # no loop of Python's over the many that it does not hold
            at = data.find(text, begin, end)
            while at >= 0:
                ends.append(at + len(text))
                at = data.find(text, data.find(b"\n", at + 1), end)  # once a line is enough
        return (row for row in lines_around(data, ends, begin, end, follow) if no_use.match(data, row[0]) is None)

    return lines


@lru_cache
def with_hyperscan(engine: Engine) -> Lines | None:
    """Return the finder that looks for all anchors at once, in C."""
    try:
        import hyperscan  # noqa: PLC0415 - an optional extra
    except ImportError:
        return None
    expressions = expressions_of(engine)
    database: Any = hyperscan.Database()  # its stubs know no memoryview
    database.compile(expressions=list(expressions), ids=list(range(len(expressions))), flags=[0] * len(expressions))
    no_use = _no_use(engine)

    def lines(data: bytes, begin: int, end: int, follow: Follow) -> Iterator[tuple[int, int]]:
        ends: list[int] = []
        part = memoryview(data)[begin:end]
        database.scan(part, match_event_handler=lambda _i, _from, to, _flags, _context: ends.append(begin + to))
        return (row for row in lines_around(data, ends, begin, end, follow) if no_use.match(data, row[0]) is None)

    return lines


def _no_use(engine: Engine) -> re.Pattern[bytes]:
    """Return how empty and dull lines begin."""
    return re.compile(rb"\n|" + engine.dull if engine.dull else rb"\n")


def lines_around(data: bytes, ends: list[int], begin: int, end: int, follow: Follow) -> Iterator[tuple[int, int]]:
    """Yield each line that one of the matches ends in, once, and as long as a dump is open every line after it."""
    ends.sort()
    at = begin
    position = 0
    while True:
        while at < end and follow(at):
            stop = data.find(b"\n", at)
            yield at, stop
            at = stop + 1
        if (position := bisect_left(ends, at + 1, position)) == len(ends):
            return
        match = ends[position] - 1
        start, stop = max(begin, data.rfind(b"\n", begin, match) + 1), data.find(b"\n", match)
        at = stop + 1
        yield start, stop


def expressions_of(engine: Engine) -> tuple[bytes, ...]:
    """Return what the multi-pattern engine looks for."""
    return tuple(re.escape(text).encode() for text in texts_of(engine))


def texts_of(engine: Engine) -> tuple[str, ...]:
    """Return the plain texts of which one is in every line that counts, of lines that do not come without end."""
    wanted = [line for line in engine.log_lines if line.kind not in ("batch", "progress")]
    found = [anchor for line in wanted for anchor in anchors_of(line.pattern.pattern) or ()]
    plain = dict.fromkeys((*found, *OTHER_TEXTS))
    return tuple(text for text in plain if not any(other in text and other != text for other in plain))
