"""Which ends of a launch are orderly: by status and order, with and without a log."""

from __future__ import annotations

import pytest

from hangdoc.criteria import weigh
from hangdoc.engines.sglang import ENGINE
from hangdoc.features.features import Features, features
from hangdoc.hypotheses.member_died import HYPOTHESIS as MEMBER_DIED
from hangdoc.hypotheses.orderly_shutdown import HYPOTHESIS as ORDERLY
from hangdoc.model.diagnosis import Grade
from hangdoc.model.ending import Ended
from hangdoc.model.log import LogEvent
from hangdoc.model.process import Process
from hangdoc.model.reading import Missing
from tests.unit.features.synthetic import Readings, cpu, process, tail, trace, whole

LAUNCHER, RANK = process(100, "launcher"), process(101, "scheduler", 100)
CRASH = LogEvent(kind="crash", name="exception", text="Scheduler hit an exception")
ANNOUNCED = LogEvent(kind="milestone", name="shutdown", phase="shutdown", text="Shutting down")
OLD = Missing("exits", "unsupported")
TERM, KILL, SEGV, ONE = Ended(15), Ended(9), Ended(11), Ended(1 << 8)
ZERO, ASKED = Ended(0), Ended(143 << 8)


def ended(
    launcher: Ended | Missing, rank: Ended | Missing, log: tuple[LogEvent, ...] | None = (), rank_first: int = 0
) -> Features:
    """A launch whose rank left so many rounds before its launcher; then nobody was there."""
    rosters: list[tuple[Process, ...]] = [(LAUNCHER, RANK)] * 2 + [(LAUNCHER,)] * rank_first
    rounds: list[Readings] = [{("cpu", one.key): cpu() for one in roster} for roster in rosters]
    last: dict[tuple[str, object], object] = {("exits", LAUNCHER.key): launcher, ("exits", RANK.key): rank}
    if log is not None:
        last["log", None] = tail(*log)
    of = trace([*rounds, last], processes=[*rosters, ()], engine="sglang")  # type: ignore[list-item]
    return features(of, ENGINE, whole(of), steady=False)


@pytest.mark.parametrize(
    ("launcher", "rank", "log", "grade"),
    [
        (ZERO, ZERO, (), "likely"),
        (ZERO, ZERO, (ANNOUNCED,), "confirmed"),
        (TERM, TERM, (), "likely"),
        (ASKED, KILL, (ANNOUNCED,), "confirmed"),
        (ZERO, KILL, None, "undetermined"),
        (ZERO, ZERO, None, "likely"),
        (ZERO, ZERO, (CRASH,), "ruled-out"),
        (ZERO, ONE, (), "ruled-out"),
        (ZERO, SEGV, (), "ruled-out"),
        (ONE, ZERO, (), "ruled-out"),
        (KILL, ZERO, (), "ruled-out"),
        (OLD, ZERO, (), "undetermined"),
        (ZERO, OLD, (), "undetermined"),
    ],
)
def test_the_end(
    launcher: Ended | Missing, rank: Ended | Missing, log: tuple[LogEvent, ...] | None, grade: Grade
) -> None:
    """Status 0 or a signal that asks is orderly; failures, kills without a log and unread ends are not."""
    assert weigh(ORDERLY, ended(launcher, rank, log)).grade == grade


@pytest.mark.parametrize(("rounds", "grade"), [(0, "likely"), (5, "likely"), (6, "ruled-out")])
def test_a_rank_that_was_killed_long_before_its_launcher(rounds: int, grade: Grade) -> None:
    """A launcher that went on without a killed rank did not kill it: no orderly end, whatever its status."""
    assert weigh(ORDERLY, ended(ZERO, KILL, rank_first=rounds)).grade == grade


def test_zombies_of_an_orderly_end_are_no_crash() -> None:
    """A launch that ended in order and was not waited for has zombies, and no dead that anybody waits for."""
    readings: Readings = {("cpu", one.key): cpu(state="Z") for one in (LAUNCHER, RANK)}
    ends: Readings = {("exits", one.key): ZERO for one in (LAUNCHER, RANK)}
    rosters = [LAUNCHER, RANK]
    for how, grade in ((ends, "ruled-out"), ({}, "undetermined")):
        of = trace([readings, {**readings, **how}], processes=rosters, engine="sglang")
        assert weigh(MEMBER_DIED, features(of, ENGINE, whole(of), steady=False)).grade == grade
