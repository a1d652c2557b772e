"""Log bytes in, events out: one line at a time through an engine's table."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from zlib import crc32

from hangdoc.logs.anchors import candidates, may_be_known
from hangdoc.logs.messages import Messages
from hangdoc.logs.prefixes import Unwrapped, unwrap
from hangdoc.logs.stamps import stamp_of
from hangdoc.model.engine import Engine, LogLine
from hangdoc.model.log import HEALTH_CHECKS, LogEvent

_CONTROL = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\n]*\x07")
_LONGEST_LINE = 20_000
"""Characters of a line that are looked at: the longest lines an engine prints are its server_args, about 10,000."""


_ECHOES = ("Receive: ", "Finish: ", "Received request ", "Generated response ")
"""How the lines begin with which servers repeat what a client sent: its text may say anything."""


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
    oldest = "" if since is None else f"{since:%Y-%m-%d %H:%M:%S}"
    is_older, messages = False, Messages()
    for start, raw in pieces(data):
        line = text_of(raw)
        if oldest and len(stamp := stamp_of(line)) == len(oldest):
            is_older = stamp < oldest
        if is_older or (event := read_line(line, engine, offset + start)) is None:
            continue
        # What a server may survive, and what it answers to health checks, tells nothing while it is looked at.
        if event.kind != "error" and event.name not in HEALTH_CHECKS:
            yield messages.told(event)


def text_of(raw: bytes) -> str:
    """Return a line as text, without colours and without the hole of NULs that a rotation left before it."""
    return decoded(colourless(raw.strip(b"\0")[:_LONGEST_LINE]))


def colourless(raw: bytes) -> bytes:
    """Return a part of a log without what steers a terminal: a colour may stand in the middle of a text."""
    return _CONTROL.sub(b"", raw) if b"\x1b" in raw else raw


class WithoutColours:
    """Places in a part of a log whose colours were taken out; begin: where that part begins in the log."""

    def __init__(self, raw: bytes, begin: int) -> None:
        self._raw, self._begin = raw, begin

    @cached_property
    def _cuts(self) -> tuple[list[int], list[int]]:
        """The places where something was taken out, and how much up to there; most parts are never asked."""
        places, removed = [], [0]
        for match in _CONTROL.finditer(self._raw):
            places.append(match.start() - removed[-1])
            removed.append(removed[-1] + len(match[0]))
        return places, removed

    def place_of(self, at: int) -> int:
        """Return the place in the log of a line that begins here without colours, its own colours before it."""
        places, removed = self._cuts
        return self._begin + at + removed[bisect_left(places, at)]


def decoded(raw: bytes) -> str:
    """Return a line as text; bytes that are no UTF-8 become one sign each."""
    return raw[:_LONGEST_LINE].decode("utf-8", "replace")


def read_line(line: str, engine: Engine, offset: int = 0) -> LogEvent | None:
    """Return the event that one line stands for, or None when the engine's table does not know it."""
    if not may_be_known(line, engine):
        return None
    bare = unwrap(line, engine.rank_axis)
    prefix = engine.log_prefix.search(bare.text) if engine.log_prefix is not None else None
    body = (bare.text[prefix.end() :] if prefix is not None else bare.text).strip()
    if body.startswith(_ECHOES):
        return None
    for known in candidates(body, engine):
        if (match := known.pattern.search(body)) is not None and _counts(match):
            told = replace(bare, rank=_rank(prefix, bare), stamp=stamp_of(line) or bare.stamp)
            return _event(known, match, _by_task(told, known, engine), offset)
    return None


_WORDS = frozenset({"request"})
"""Groups whose text is a name, even where it has digits alone."""


def _counts(match: re.Match[str]) -> bool:
    """Tell whether all numbers of a line may be some: others are damaged, or no such line."""
    groups = match.groupdict().items()
    return not any(
        value and name not in _WORDS and _DIGITS.fullmatch(value) and not _NUMBER.fullmatch(value)
        for name, value in groups
    )


MOST_DIGITS = 15
"""What a double holds to the last digit; no rank, pid or count has more."""

_NUMBER = re.compile(rf"-?\d{{1,{MOST_DIGITS}}}", re.ASCII)
_DIGITS = re.compile(r"-?\d+")


def _rank(prefix: re.Match[str] | None, bare: Unwrapped) -> dict[str, int]:
    printed = prefix.groupdict() if prefix is not None else {}
    return dict(bare.rank) | {axis: int(number) for axis, number in printed.items() if number is not None}


def _by_task(line: Unwrapped, known: LogLine, engine: Engine) -> Unwrapped:
    """Return a line whose task is its rank where it names none; a failure without one may be of any rank of a node.

    Why: `srun --label` starts servers once on each node, and everything that a node prints has its task's label.
    """
    if line.task < 0 or line.rank or (engine.rank_axis == "tp" and known.kind in ("crash", "error", "watchdog")):
        return line
    return replace(line, rank={engine.rank_axis: line.task})


def _event(known: LogLine, match: re.Match[str], line: Unwrapped, offset: int) -> LogEvent:
    groups = {name: value for name, value in match.groupdict().items() if value is not None}
    numbers = {name: float(value) for name, value in groups.items() if _NUMBER.fullmatch(value)}
    if "request" in groups:
        numbers["request"] = float(crc32(groups["request"].encode()))
    if known.kind == "progress":
        numbers |= bar_of(line.text)
    if line.task >= 0 and known.kind in ("crash", "error", "watchdog"):
        numbers.setdefault("task", float(line.task))
    if line.pid and known.kind != "crash":
        numbers.setdefault("pid", float(line.pid))
    return LogEvent(
        kind=known.kind,
        name=known.name,
        phase=known.phase,
        rank=line.rank,
        offset=offset,
        text=known.text.format(**groups),
        stamp=line.stamp,
        victim=known.victim,
        numbers=numbers,
    )


_BAR = re.compile(
    r"(?P<done>\d{1,9})/(?P<total>\d{1,9}) "
    r"\[(?P<elapsed>(?:\d{1,4}:)?\d{1,2}:\d\d)<(?P<left>(?:\d{1,4}:)?\d{1,2}:\d\d|\?)"
)


def bar_of(text: str) -> dict[str, float]:
    """Return the numbers of a progress bar as tqdm draws it: done, total, elapsed_s, left_s; those that it has.

    >>> bar_of("98% Completed | 159/163 [31:48<00:40, 10.19s/it]")
    {'done': 159.0, 'total': 163.0, 'elapsed_s': 1908.0, 'left_s': 40.0}
    """
    match = _BAR.search(text)
    if match is None:
        return {}
    found = {"done": float(match["done"]), "total": float(match["total"]), "elapsed_s": _seconds(match["elapsed"])}
    return found if match["left"] == "?" else {**found, "left_s": _seconds(match["left"])}


def _seconds(clock: str) -> float:
    seconds = 0.0
    for part in clock.split(":"):
        seconds = seconds * 60 + int(part)
    return seconds


def loose(known: LogLine) -> str:
    """Return a line's pattern without groups' names, and without the anchor that counts from its prefix's end."""
    pattern = re.sub(r"\(\?P<\w+>", "(?:", known.pattern.pattern)
    return re.sub(r"(^|\||\()\^", r"\1", pattern)


def pieces(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, line) of every line that is not empty; what follows the last line's end is left out."""
    start = 0
    for end in (match.start() for match in re.finditer(rb"[\r\n]", data)):
        if end > start:
            yield start, data[start:end]
        start = end + 1
