"""A recording beside the clock, on a disk that is slow, stuck or broken."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from hangdoc.errors import HangdocError
from hangdoc.features.lacking import lacks_of
from hangdoc.model.snapshot import Snapshot
from hangdoc.model.stack import Stack
from hangdoc.trace import aside as module
from hangdoc.trace.aside import MOST_ROUNDS, Aside
from hangdoc.trace.reader import read
from hangdoc.trace.records import Trace
from hangdoc.trace.writer import DiskError, Writer
from tests.unit.observe.rounds import HEADER, alive
from tests.unit.trace.test_scribe import Held


class Sticky:
    """A writer whose disk takes the first round when it is let go."""

    def __init__(self, path: Path) -> None:
        self.held = Held()
        self._writer = Writer.open(path, HEADER)

    def add(self, snapshot: Snapshot, stacks: Sequence[Stack]) -> None:
        if snapshot.index == 0:
            self.held.job()
        self._writer.add(snapshot, stacks)

    def __exit__(self, *_: object) -> None:
        self._writer.close()


def test_rounds_that_find_no_room_are_counted(tmp_path: Path) -> None:
    """No round waits for the disk; the file has those that found room, and the end says how many did not."""
    path = tmp_path / "a.hangtrace"
    sticky = Sticky(path)
    one = Aside(path, lambda: sticky)
    one.add(alive(0), ())
    sticky.held.wait()
    for index in range(1, MOST_ROUNDS + 8):
        one.add(alive(index), ())
    sticky.held.let_go()
    with pytest.raises(DiskError, match=rf"too slow, 7 of {MOST_ROUNDS + 8} rounds"):
        one.__exit__(None, None, None)
    trace = read(path)
    assert trace.complete
    assert [snapshot.index for snapshot in trace.snapshots] == list(range(MOST_ROUNDS + 1))


def test_a_stuck_disk_does_not_hold_up_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end waits for some time only, and counts the rounds that are not on the disk."""
    path = tmp_path / "a.hangtrace"
    sticky = Sticky(path)
    one = Aside(path, lambda: sticky)
    for index in range(3):
        one.add(alive(index), ())
    sticky.held.wait()
    monkeypatch.setattr(module, "ANSWER_S", 0.05)
    with pytest.raises(DiskError, match="3 of 3 rounds"):
        one.__exit__(None, None, None)
    sticky.held.let_go()


def test_a_stuck_disk_does_not_hold_up_the_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be opened in time is one clear line."""
    monkeypatch.setattr(module, "ANSWER_S", 0.05)
    held = Held()

    def opened() -> Writer:
        held.job()
        return Writer.open(tmp_path / "a.hangtrace", HEADER)

    with pytest.raises(DiskError, match="no answer within"):
        Aside(tmp_path / "a.hangtrace", opened)
    held.let_go()


def test_what_the_recording_raises(tmp_path: Path) -> None:
    """A file that cannot be written ends the recording, with what the writer said."""
    with pytest.raises(HangdocError, match="absent"):
        Aside(tmp_path / "absent" / "a", lambda: Writer.open(tmp_path / "absent" / "a", HEADER))


def test_a_replay_tells_the_gap() -> None:
    """What a slow disk has cost stands under `missing`; a trace that begins late in an observation is whole."""

    def told(*indexes: int) -> list[str]:
        return [one.detail for one in lacks_of(Trace(header=HEADER, stacks=(), snapshots=tuple(map(alive, indexes))))]

    assert told(0, 1, 2, 6, 7, 9) == ["4 rounds are not in it: the disk that it was recorded to was too slow"]
    assert told(40, 41, 42) == []
