"""The text of each public report through `hangdoc diagnose`: wrong verdicts are rare, and no half is treated better."""

from __future__ import annotations

from functools import lru_cache

import pytest

from tests.corpus.score import HALVES, Answer, answers

MOST_WRONG_RATIO = 0.03
FEWEST_CRASHES_RATIO = 0.9
FEWEST_PHASES_RATIO = 0.9


@lru_cache
def every() -> tuple[Answer, ...]:
    return tuple(answers())


def test_there_are_two_halves() -> None:
    """Rules were made from one half; the other one has as many reports."""
    counts = [sum(one.report.half == half for one in every()) for half in HALVES]
    assert min(counts) > 0.4 * sum(counts)


@pytest.mark.parametrize("half", HALVES)
def test_wrong_verdicts(half: str) -> None:
    """Outside low confidence at most 3 % of the verdicts are wrong: what a text does not tell is undetermined."""
    sure = [one for one in every() if one.report.half == half and one.report.confidence != "low"]
    wrong = [f"{one.report.id}: {one.found.verdict}" for one in sure if one.score == "wrong"]
    assert len(wrong) <= MOST_WRONG_RATIO * len(sure), wrong


@pytest.mark.parametrize("half", HALVES)
def test_it_does_not_only_abstain(half: str) -> None:
    """A fifth of the texts suffices for a verdict."""
    found = [one for one in every() if one.report.half == half]
    assert sum(one.score == "right" for one in found) >= len(found) / 5


def test_crash_lines_are_found() -> None:
    """Of the texts that have a crash line, nine in ten are seen to."""
    with_crash = [one for one in every() if one.report.crash]
    assert sum(one.crash_is_found for one in with_crash) >= FEWEST_CRASHES_RATIO * len(with_crash)


@pytest.mark.parametrize("half", HALVES)
def test_phases(half: str) -> None:
    """The phase is that of the label in nine of ten texts that have a milestone."""
    found = [one for one in every() if one.report.milestone and one.report.half == half]
    assert sum(one.phase_is_right for one in found) >= FEWEST_PHASES_RATIO * len(found)


def test_no_text_says_how_it_hangs() -> None:
    """A text does not separate a spin from a block: neither is ever said."""
    assert {one.found.verdict for one in every()} <= {"hung", "crashed", "slow-start", "healthy", "undetermined"}
