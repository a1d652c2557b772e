"""Following: what ends it, and with which exit code."""

from __future__ import annotations

import pytest

from hangdoc.errors import ExitCode
from hangdoc.model.diagnosis import Diagnosis, Grade, Verdict
from hangdoc.model.log import Phase
from hangdoc.observe.follow import RECENT_ROUNDS, ROUNDS_BETWEEN, Following, Goal, Until, View, following_code
from hangdoc.observe.look import End, Reasoning
from hangdoc.trace.records import Trace
from tests.unit.observe.rounds import PlayedObserver, alive, attached, snapshot
from tests.unit.report.diagnoses import a_diagnosis

HUNG = a_diagnosis(verdict="blocked", grade="likely", phase="warmup")
STARTING = a_diagnosis(verdict="slow-start", grade="likely", phase="launch")
READY = a_diagnosis(verdict="healthy", grade="confirmed", phase="ready")
CRASHED = a_diagnosis(verdict="crashed", grade="confirmed", phase="warmup")
UNCLEAR = a_diagnosis(verdict="undetermined", grade="undetermined", phase="unknown")


def played(answers: dict[int, Diagnosis], settled_from: int = 0) -> Reasoning:
    """Reasoning that answers by the last round's number, with the latest answer before it."""

    def diagnose(trace: Trace) -> Diagnosis:
        number = trace.snapshots[-1].index
        return answers[max(key for key in answers if key <= number)]

    return Reasoning(diagnose, lambda trace: trace.snapshots[-1].index >= settled_from)


def views(answers: dict[int, Diagnosis], goal: Goal, rounds: int = 100, gone_at: int | None = None) -> list[View]:
    played_rounds = [alive(index) for index in range(rounds)]
    if gone_at is not None:
        played_rounds[gone_at:] = [snapshot(gone_at, processes=())]
    return list(Following(attached(PlayedObserver(played_rounds)), played(answers), goal).views())


def code(seen: list[View], until: Until | None) -> ExitCode:
    return following_code(seen[-1], until)


def test_until_ready() -> None:
    """Ready ends it with 0."""
    seen = views({0: STARTING, 20: READY}, Goal("ready"))
    assert (seen[-1].end, code(seen, "ready")) == ("settled", 0)
    assert seen[0].diagnosis == STARTING


def test_until_ready_goes_on_over_a_hang() -> None:
    """A hang does not end a wait for ready: it may be over in time; the timeout says 1."""
    seen = views({0: HUNG}, Goal("ready", timeout_s=50))
    assert (seen[-1].end, code(seen, "ready")) == ("time", 1)


def test_until_hang() -> None:
    """A hang ends it with 1."""
    seen = views({0: STARTING, 9: HUNG}, Goal("hang"))
    assert (seen[-1].end, code(seen, "hang")) == ("settled", 1)


@pytest.mark.parametrize(("last", "expected"), [(READY, 0), (STARTING, 0), (CRASHED, 1)])
def test_until_exit(last: Diagnosis, expected: int) -> None:
    """The launch's end is 0, or 1 when it crashed."""
    seen = views({0: STARTING, 9: last}, Goal("exit"), gone_at=12)
    assert (seen[-1].end, code(seen, "exit")) == ("gone", expected)


@pytest.mark.parametrize(("last", "expected"), [(READY, 3), (HUNG, 3), (CRASHED, 1)])
def test_gone_while_waiting_for_something_else(last: Diagnosis, expected: int) -> None:
    """Gone before it was ready: a crash is 1, anything else nobody can say: 3."""
    seen = views({0: STARTING, 9: last}, Goal("hang" if last is READY else "ready"), gone_at=12)
    assert code(seen, "ready") == expected


@pytest.mark.parametrize(("last", "expected"), [(STARTING, 3), (READY, 3), (HUNG, 1)])
def test_timeout(last: Diagnosis, expected: int) -> None:
    """The timeout first: 1 on a hang, else 3."""
    seen = views({0: last}, Goal("exit", timeout_s=10))
    assert (seen[-1].end, code(seen, "exit")) == ("time", expected)


@pytest.mark.parametrize(
    ("verdict", "grade", "expected"),
    [("healthy", "confirmed", 0), ("blocked", "likely", 1), ("undetermined", "undetermined", 3)],
)
def test_stopped(verdict: Verdict, grade: Grade, expected: int) -> None:
    """Ctrl-C: the code of the last document."""
    seen = views({0: a_diagnosis(verdict=verdict, grade=grade)}, Goal(), rounds=7)
    assert (seen[-1].end, code(seen, None)) == ("stopped", expected)


def test_what_does_not_stand_is_passed_over() -> None:
    """Before the readings agree nothing is shown, but not for longer than patience."""
    observer = PlayedObserver([alive(index) for index in range(40)])
    goal = Goal(timeout_s=38, patience_s=12)
    seen = list(Following(attached(observer), played({0: UNCLEAR}, settled_from=1000), goal).views())
    assert len(seen) == 4


@pytest.mark.parametrize(
    ("end", "until", "phase", "expected"),
    [("settled", "ready", "serving", 0), ("stopped", None, "ready", 0), ("time", "hang", "ready", 3)],
)
def test_code(end: End, until: Until | None, phase: Phase, expected: int) -> None:
    """The contract's table, for a healthy launch."""
    assert following_code(View(a_diagnosis(verdict="healthy", grade="likely", phase=phase), end), until) == expected


def test_the_last_rounds_alone_may_tell() -> None:
    """What all kept rounds do not agree on, a spin after a healthy poll, is told from the last ones alone, in time."""

    def diagnose(trace: Trace) -> Diagnosis:
        whole = [one.index for one in trace.snapshots][1:]
        return HUNG if whole and whole[0] >= 20 else UNCLEAR

    reasoning = Reasoning(diagnose, lambda trace: diagnose(trace) == HUNG)
    observer = PlayedObserver([alive(index) for index in range(60)])
    seen = list(Following(attached(observer), reasoning, Goal("hang")).views())
    assert (seen[-1].end, seen[-1].diagnosis, seen[-1].rounds) == ("settled", HUNG, RECENT_ROUNDS)
    assert observer.last_index < 20 + RECENT_ROUNDS + ROUNDS_BETWEEN + 1
