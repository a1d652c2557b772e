"""The course: what was said when, the last of it being the diagnosis itself."""

from __future__ import annotations

import itertools

import pytest

from hangdoc.report.course import MOST_MOMENTS, course, moments
from hangdoc.report.material import material
from tests.unit.report.recordings import golden


@pytest.mark.parametrize("name", ["absent-allreduce", "busy-warmup", "healthy-tp2-serving"])
def test_it_ends_with_the_diagnosis(name: str) -> None:
    """Stretches follow each other without a gap; the last one says what the report says."""
    found = material(golden(name), "trace")
    stretches = course(found)
    assert stretches[0].start_s == 0.0
    assert all(one.end_s == after.start_s for one, after in itertools.pairwise(stretches))
    last = stretches[-1]
    assert (last.verdict, last.grade, last.phase) == (
        found.diagnosis.verdict,
        found.diagnosis.grade,
        found.diagnosis.phase,
    )
    assert last.end_s == found.whole.seconds


def test_a_hang_is_not_said_from_the_start() -> None:
    """The first rounds of a hang are no verdict yet."""
    assert [one.says for one in course(material(golden("absent-allreduce"), "trace"))] == [
        "undetermined",
        "blocked (confirmed)",
    ]


def test_long_recordings_are_looked_at_here_and_there() -> None:
    """Never more than so many moments; the last round always, once."""
    for rounds in (1, 2, 3, 25, 26, 1000):
        found = list(moments(rounds, 4))
        assert found[-1] == rounds - 1
        assert found == sorted(set(found))
        assert len(found) <= MOST_MOMENTS
