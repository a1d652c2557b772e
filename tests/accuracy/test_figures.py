"""What the accuracy table says follows from the records, and a run that was cut goes on where it stopped."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.accuracy import figures
from tests.accuracy.figures import Share, at_most
from tests.accuracy.records import Book, Record, Round
from tests.accuracy.table import table

BLOCKED = Record(
    group="patients",
    name="a",
    load="none",
    round=0,
    accepted=("blocked",),
    verdict="blocked",
    grade="confirmed",
    culprits=("rank1",),
    culprit_right=True,
    took_s=6.0,
)
WELL = replace(BLOCKED, name="b", accepted=("healthy", "undetermined"), verdict="undetermined", culprit_right=None)
FALSE_HANG = replace(WELL, name="c", verdict="blocked", grade="likely")
INCONCLUSIVE = replace(FALSE_HANG, name="d", state="inconclusive", why="rank1 ended during the look")


def row(text: str, title: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(f"| {title} |"))


def test_examples() -> None:
    """The examples in the docstrings are true."""
    assert doctest.testmod(figures) == (0, 7)


@pytest.mark.parametrize("count", [1, 7, 50, 300])
def test_bounds_are_where_the_tail_is(count: int) -> None:
    """At each bound of an interval what was seen, or something further away, has just the probability left out."""
    for hits in (1, count // 2, count - 1):
        if 0 < hits < count:
            low, high = Share(hits, count).interval
            assert at_most(hits, count, high) == pytest.approx(0.025, abs=1e-6)
            assert at_most(count - hits, count, 1 - low) == pytest.approx(0.025, abs=1e-6)
    assert at_most(0, count, Share(0, count).interval[1]) == pytest.approx(0.05, abs=1e-6)
    assert Share(count, count).interval[0] == pytest.approx(1 - Share(0, count).interval[1], abs=1e-6)


def test_what_is_wrong_is_counted_and_listed() -> None:
    """A false hang counts as one, is bold in the matrix and listed; an inconclusive look counts nowhere."""
    text = table([BLOCKED, WELL, FALSE_HANG, INCONCLUSIVE], "python -m tests.accuracy")
    assert "1 of 2" in row(text, "false hangs, of launches that are well")
    assert "2 of 3" in row(text, "verdict right")
    assert "1 of 1" in row(text, "culprit right, of hangs")
    assert "0 of 1" in row(text, "all right where likely")
    assert "**1**" in row(text, "no hang, or cannot be told")
    assert "- c (load none, round 0): blocked likely" in text
    assert "- d (load none, round 0)" in text.partition("Inconclusive:")[2]


def test_a_failure_of_hangdoc_is_wrong() -> None:
    """A look that gave no document counts as wrong, not as inconclusive."""
    failed = replace(BLOCKED, state="failed", verdict="none", grade="none", culprit_right=None)
    assert "0 of 1" in row(table([failed], ""), "verdict right")


def test_a_cut_run_goes_on(tmp_path: Path) -> None:
    """Half a line at the end of the file is dropped, what was conclusive is there, the rest is looked at again."""
    path = tmp_path / "records.jsonl"
    book = Book(path)
    for record in (BLOCKED, INCONCLUSIVE):
        book.enter(record)
    with path.open("ab") as file:
        file.write(b'{"group":"pat')
    again = Book(path)
    now = Round(0, "none", again, tmp_path / "kept")
    assert [now.lacks("patients", name) for name in "abcd"] == [False, True, True, True]
    again.enter(WELL)
    assert set(Book(path).records) == {BLOCKED.key, INCONCLUSIVE.key, WELL.key}


def test_only_what_is_wrong_keeps_its_trace(tmp_path: Path) -> None:
    """The trace of a wrong or an inconclusive look is kept, that of a right one is not."""
    trace = tmp_path / "look.hangtrace"
    trace.write_bytes(b"a trace")
    now = Round(0, "none", Book(tmp_path / "records.jsonl"), tmp_path / "kept")
    for record in (BLOCKED, FALSE_HANG, INCONCLUSIVE):
        now.enter(record, trace)
    assert sorted(path.name[0] for path in now.kept.iterdir()) == ["c", "d"]
