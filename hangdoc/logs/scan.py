"""Finds the few lines of a long log that mean something, fast: a serving engine prints the same lines without end."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

from hangdoc.logs.anchors import anchors_of
from hangdoc.model.engine import Engine

Lines: TypeAlias = Callable[[bytes, int, int, bool], Iterator[tuple[int, int]]]
"""Given (data, begin, end, follow), yields (start, end) of the lines of data[begin:end] that may mean something; that
part consists of whole lines. follow: a stack dump was open where it begins."""

OTHER_ANCHORS = ("Process ", "Thread ", "Current thread ", "sglang", "vllm", "vLLM", "LLM engine")
"""What stands in the first lines of dumps and in lists of versions."""

_TABLE = rb"\n\|"
"""How the lines of nvidia-smi's table begin."""


def lines_for(engine: Engine, *, fast: bool = True) -> Lines:
    """Return what finds the lines; fast: with hyperscan where it is installed (hangdoc[fast])."""
    scan = _hyperscan(engine) if fast else None
    return scan or (_without_dull(engine) if engine.dull else _one_by_one(engine))


@lru_cache
def _without_dull(engine: Engine) -> Lines:
    """Return the finder that skips the lines a serving engine prints without end; all others are read.

    Rule: a search for a line feed that no dull line follows. Why it works: Python's re looks for the literal with
    memchr, so that a dull line costs 0.2 us. Fails (slowly, never wrongly) on logs of other programs.
    """
    dull = engine.dull
    at_start = re.compile(dull)
    other = re.compile(rb"\n(?!\n|" + dull + rb"|$)")

    def lines(data: bytes, begin: int, end: int, follow: bool) -> Iterator[tuple[int, int]]:
        del follow  # every line of a dump is one that is not dull
        if at_start.match(data, begin) is None:
            yield begin, data.find(b"\n", begin)
        for match in other.finditer(data, begin, end - 1):
            start = match.end()
            yield start, data.find(b"\n", start)

    return lines


@lru_cache
def _one_by_one(engine: Engine) -> Lines:
    """Return the finder that looks for one text after the other: for programs that print no dull lines."""
    texts = [text.encode() for text in texts_of(engine)]

    def lines(data: bytes, begin: int, end: int, follow: bool) -> Iterator[tuple[int, int]]:
        ends = [begin + 1] if data.startswith(b"|", begin) else []
        for text in (*texts, b"\n|"):
            at = data.find(text, begin, end)
            while at >= 0:
                ends.append(at + len(text))
                at = data.find(text, data.find(b"\n", at + 1), end)  # once a line is enough
        return lines_around(data, ends, begin, end, follow)

    return lines


@lru_cache
def _hyperscan(engine: Engine) -> Lines | None:
    """Return the finder that looks for all anchors at once, in C."""
    try:
        import hyperscan  # noqa: PLC0415 - an optional extra
    except ImportError:
        return None
    expressions = expressions_of(engine)
    database: Any = hyperscan.Database()  # its stubs know no memoryview
    database.compile(expressions=list(expressions), ids=list(range(len(expressions))), flags=[0] * len(expressions))

    def lines(data: bytes, begin: int, end: int, follow: bool) -> Iterator[tuple[int, int]]:
        ends = [begin + 1] if data.startswith(b"|", begin) else []
        part = memoryview(data)[begin:end]
        database.scan(part, match_event_handler=lambda _i, _from, to, _flags, _context: ends.append(begin + to))
        return lines_around(data, ends, begin, end, follow)

    return lines


def lines_around(
    data: bytes,
    ends: list[int],
    begin: int,
    end: int,
    follow: bool,
) -> Iterator[tuple[int, int]]:
    """Yield each line that one of the matches ends in, once, and after the head of a dump its frames."""
    ends.sort()
    at = begin
    position = 0
    if follow:
        for row in _frames(data, begin, end):
            yield row
            at = row[1] + 1
    while (position := bisect_left(ends, at + 1, position)) < len(ends):
        match = ends[position] - 1
        start, stop = max(begin, data.rfind(b"\n", begin, match) + 1), data.find(b"\n", match)
        if start >= at:
            yield start, stop
        at = stop + 1
        if _HEAD.search(data, start, stop) is not None:
            for row in _frames(data, at, end):
                yield row
                at = row[1] + 1


_HEAD = re.compile(rb"(?:Process|Thread) \d|(?:Thread|Current thread) 0x")
_FRAME_END = re.compile(rb"\)\s*$|^\s*$|Python v|Thread |^\s{8}|, line \d+ in ")


def _frames(data: bytes, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the lines that go on with a dump: its frames end in the place where they are, (file.py:12)."""
    while begin < end:
        stop = data.find(b"\n", begin)
        if _FRAME_END.search(data[begin:stop]) is None:
            return
        yield begin, stop
        begin = stop + 1


def expressions_of(engine: Engine) -> tuple[bytes, ...]:
    """Return what the multi-pattern engine looks for."""
    return (*(re.escape(text).encode() for text in texts_of(engine)), _TABLE)


def texts_of(engine: Engine) -> tuple[str, ...]:
    """Return the plain texts of which one is in every line that counts, of lines that do not come without end."""
    wanted = [line for line in engine.log_lines if line.kind not in ("batch", "progress")]
    found = [anchor for line in wanted for anchor in anchors_of(line.pattern.pattern) or ()]
    plain = dict.fromkeys((*found, *OTHER_ANCHORS))
    return tuple(text for text in plain if not any(other in text and other != text for other in plain))
