"""The grammar of a hypothesis: the grade that outcomes give, and which suspect is the best."""

from __future__ import annotations

import itertools

import pytest

from hangdoc.criteria import RANK, Absent, Case, Hypothesis, Outcome, Outcomes, Present, Unread, grade, weigh
from hangdoc.features.features import features
from hangdoc.hypotheses._signs import readings_are_steady
from hangdoc.model.diagnosis import Grade
from hangdoc.model.engine import Engine
from hangdoc.model.reading import Missing
from tests.unit.features.synthetic import process, trace, whole

YES, NO, UNREAD = Present("yes"), Absent("no"), Unread("unread")


@pytest.mark.parametrize(
    ("essential", "excluding", "contrary", "enough", "expected"),
    [
        (YES, NO, NO, True, "confirmed"),
        (YES, NO, NO, False, "likely"),
        (YES, NO, YES, True, "likely"),
        (YES, NO, UNREAD, True, "likely"),
        (UNREAD, NO, NO, True, "undetermined"),
        (YES, UNREAD, NO, True, "undetermined"),
        (NO, NO, NO, True, "ruled-out"),
        (YES, YES, NO, True, "ruled-out"),
        (NO, UNREAD, UNREAD, True, "ruled-out"),
        (UNREAD, YES, NO, False, "ruled-out"),
    ],
)
def test_grade(essential: Outcome, excluding: Outcome, contrary: Outcome, enough: bool, expected: Grade) -> None:
    """Each kind of sign caps the grade in its own way."""
    assert grade([essential], [excluding], [contrary], enough=enough) == expected


def test_a_sign_less_never_raises_a_grade() -> None:
    """Over all outcomes: one that was not read gives no higher grade, but ruled-out may become undetermined."""
    for outcomes in itertools.product((YES, NO), repeat=3):
        full = grade([outcomes[0]], [outcomes[1]], [outcomes[2]], enough=True)
        for lost in range(3):
            one, other, third = (UNREAD if at == lost else outcome for at, outcome in enumerate(outcomes))
            less = grade([one], [other], [third], enough=True)
            assert RANK[less] <= RANK[full] or (full, less) == ("ruled-out", "undetermined")


def hypothesis(**signs: object) -> Hypothesis:
    given = {
        "id": "HD000",
        "name": "test",
        "verdict": "blocked",
        "suspects": lambda seen: tuple(seen.members.values()),
        "essential": (lambda _: YES,),
        "headline": "",
        "action": "",
        "playbook": "",
    }
    return Hypothesis(**{**given, **signs})  # type: ignore[arg-type]


def only(pid: int, otherwise: Outcome = NO) -> object:
    def sign(case: Case) -> Outcome:
        return YES if case.patient.key.pid == pid else otherwise

    return sign


def weighed(tested: Hypothesis) -> tuple[int, Grade]:
    of = trace([{}, {}], processes=[process(101), process(102), process(103)])
    best = weigh(tested, features(of, Engine(name="generic"), whole(of), steady=True))
    return best.case.patient.key.pid, best.grade


def test_the_best_suspect_has_the_best_grade() -> None:
    """A suspect that it is beats those that it may be, and those that it is not."""
    assert weighed(hypothesis(essential=(only(102, UNREAD),))) == (102, "likely")
    assert weighed(hypothesis(essential=(only(103),))) == (103, "likely")


def test_among_equal_grades_support_decides_and_then_the_first() -> None:
    """More supporting signs win; of equals the first in the roster."""
    assert weighed(hypothesis(supporting=(only(103),), confirm_at=2)) == (103, "likely")
    assert weighed(hypothesis()) == (101, "likely")


def test_nobody_to_suspect() -> None:
    """A launch without anybody whom it could be rules it out, in words."""
    of = trace([{}, {}])
    best = weigh(hypothesis(suspects=lambda _: ()), features(of, Engine(name="generic"), whole(of), steady=True))
    assert best.grade == "ruled-out"
    assert best.against


@pytest.mark.parametrize(("steady", "outcome"), [(True, Present), (False, Absent), (Missing("cpu", "denied"), Unread)])
def test_steadiness_that_was_not_read_is_neither(steady: bool | Missing, outcome: type[Outcome]) -> None:
    """Slices that were not read do not rule a hang out: that they are all of one kind stays open."""
    of = trace([{}, {}])
    found = readings_are_steady(Case(features(of, Engine(name="generic"), whole(of), steady=steady), None))
    assert isinstance(found, outcome)


def test_a_sign_of_the_launch_is_asked_once() -> None:
    """A sign that does not look at its suspect is asked once for all suspects of all hypotheses, any other for each."""
    asked: list[str] = []

    def of_the_launch(case: Case) -> Outcome:
        asked.append("launch")
        return YES if case.features.members else NO

    def of_a_suspect(case: Case) -> Outcome:
        asked.append(f"{case.patient.key.pid}")
        return YES

    of = trace([{}, {}], processes=[process(101), process(102), process(103)])
    seen = features(of, Engine(name="generic"), whole(of), steady=True)
    tested, said = hypothesis(essential=(of_the_launch,), supporting=(of_a_suspect,)), Outcomes(seen)
    assert weigh(tested, seen, said) == weigh(tested, seen, said)
    assert asked == ["launch", "101", "102", "103"]
