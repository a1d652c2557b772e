"""Numbers of lines: as an editor counts, in files of any kind, however they come in pieces."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hangdoc import discovery
from hangdoc.diagnosis import diagnose
from hangdoc.logs.numbers import FARTHEST_NUMBERED_BYTES, LineNumbers, numbered
from hangdoc.logs.read import Wishes, read
from hangdoc.logs.stream import Stream
from hangdoc.model.log import LogEvent


@given(text=st.text("a\n\r", max_size=60).map(str.encode), size=st.integers(1, 9), data=st.data())
def test_any_pieces(text: bytes, size: int, data: st.DataObject) -> None:
    """Whatever the pieces, a line's number is one more than the line feeds before it, in one pass or two."""
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    offsets = sorted(data.draw(st.sets(st.integers(0, max(0, len(text) - 1)), max_size=5)))
    truth = [text.count(b"\n", 0, offset) + 1 for offset in offsets]
    events = tuple(LogEvent(kind="crash", name="killed", offset=offset) for offset in offsets)
    again = numbered(events, pieces)
    assert not text or [event.line for event in again] == truth
    once, told, left = LineNumbers(), [], list(offsets)
    for piece in pieces:
        once.feed(piece)
        while left and left[0] < once.end:
            told.append(once.number_of(left.pop(0)))
    told += [once.number_of(offset) for offset in left]  # in the last line, which nothing ended
    assert not text or told == truth


@pytest.mark.parametrize("size", [7, 64, 4096])
def test_colours(size: int) -> None:
    """Of a coloured log the same lines are told as an editor shows them, in one pass or two."""
    lines = [f"\x1b[32mline {number}\x1b[0m\r\x1b[1mKilled\x1b[0m\n" for number in range(40)]
    text = "".join(lines).encode()
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    for numbers in None, LineNumbers():
        stream = Stream(discovery.engine("generic"), numbers=numbers)
        for piece in pieces:
            stream.feed(piece)
        found = stream.finish().events
        told = found if numbers is not None else numbered(found, pieces)
        assert [event.line for event in told][:20] == list(range(1, 21))


def test_milestones_have_none() -> None:
    """Only what the report names with its line is looked for."""
    assert numbered((LogEvent(kind="milestone", name="ready", offset=3),), [b"a\nb\n"])[0].line == 0


def test_far_lines_have_none() -> None:
    """Far into a log no lines are counted, and the log is not read once more for them."""
    far = LogEvent(kind="crash", name="killed", offset=FARTHEST_NUMBERED_BYTES)
    near = LogEvent(kind="crash", name="killed", offset=3)
    read_again = iter([b"a\nb\nKilled\n", b"this piece is not asked for"])
    assert [event.line for event in numbered((near, far), read_again)] == [2, 0]
    assert next(read_again) == b"this piece is not asked for"


def test_packed_and_rotated(tmp_path: Path) -> None:
    """In a packed file the line counts unpacked; of a log in several pieces no number is told."""
    packed = tmp_path / "one" / "server.log.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress(b"x\n" * 9 + b"Killed\n"))
    assert "(line 10)" in diagnose(read([packed], Wishes()), "log").headline
    (tmp_path / "server.log.1").write_bytes(b"x\n")
    (tmp_path / "server.log").write_bytes(b"Killed\n")
    found = diagnose(read([tmp_path / "server.log.1", tmp_path / "server.log"], Wishes()), "log")
    assert "line" not in found.headline
