"""What instructions prove of a loop of one line, and where that counts."""

from __future__ import annotations

import pytest

from hangdoc.criteria import Case, Present, Unread
from hangdoc.engines.sglang import ENGINE
from hangdoc.features.features import features
from hangdoc.features.places import Rounds, goes_round
from hangdoc.hypotheses.python_busy_loop import HYPOTHESIS
from hangdoc.model.places import Places, ThreadPlaces
from hangdoc.model.stack import Frame
from tests.unit.features.synthetic import KEY, Readings, clock, cpu, dump, process, progress, trace, whole

FRAME = Frame("Worker.<locals>.wait", "/srv/worker.py", 7)


def seen(turns: int = 4, *, same: int = 40, places: int = 3, function: str = "wait", tid: int = 100) -> Places:
    return Places((ThreadPlaces(tid, function, "/srv/worker.py", 40, same, places, turns),))


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ([seen(2), seen(1)], Rounds(3, 80)),
        ([seen(), seen(), seen()], Rounds(12, 120)),
        ([seen(40)], None),
        ([seen(1), seen(1)], None),
        ([seen(), seen(same=39)], None),
        ([seen(), seen(0, places=1)], None),
        ([seen(), seen(function="step")], None),
        ([seen(tid=101), seen(tid=101)], None),
        ([], None),
    ],
)
def test_what_proves_a_loop(readings: list[Places], expected: Rounds | None) -> None:
    """Every look of two readings or more in one frame of this function, and some of them backwards."""
    assert goes_round(readings, 100, FRAME) == expected


@pytest.mark.parametrize(
    ("places", "outcome"), [(seen(), Present), (seen(0, places=1), Unread), (None, Unread), (seen(same=3), Unread)]
)
def test_three_stacks_that_are_all_alike(places: Places | None, outcome: type) -> None:
    """Stacks that all show one line are a loop only when the instructions say so; a native call looks the same."""
    rounds: list[Readings] = [
        {
            ("cpu", KEY): cpu(clock(float(number), slices=number)),
            ("progress", KEY): progress(),
            ("stacks", KEY): dump((100, 0)),
            **({} if places is None else {("places", KEY): places}),
        }
        for number in range(4)
    ]
    of = trace(rounds, processes=[process(role="scheduler")], stacks=[(FRAME,)], engine="sglang")
    found = features(of, ENGINE, whole(of), steady=True)
    assert isinstance(HYPOTHESIS.essential[2](Case(found, found.members[KEY])), outcome)
