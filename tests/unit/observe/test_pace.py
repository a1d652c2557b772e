"""A launch that is well is looked at seldom, and closely again as soon as a cheap reading speaks against it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from msgspec.structs import replace

from hangdoc.model.diagnosis import Diagnosis, LimitState
from hangdoc.model.ending import Ended
from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.reading import Known
from hangdoc.model.snapshot import Sample, Snapshot
from hangdoc.model.thread import CpuUse, ProcessIo, ProcessStat, Progress, ThreadClock
from hangdoc.observe.alarm import Alarm
from hangdoc.observe.attach import Attached
from hangdoc.observe.follow import RESTING_S, ROUNDS_BETWEEN, Following, Goal
from hangdoc.observe.look import Reasoning
from hangdoc.sampling.pace import CALM_EVERY, LEAD_ROUNDS, QUIET_EVERY, RESTING_EVERY, Pace
from hangdoc.trace.records import Trace
from tests.unit.observe.rounds import HEADER, LAUNCHER, RANK, PlayedObserver, attached, cpu, log, sample, snapshot
from tests.unit.report.diagnoses import a_diagnosis

WELL = a_diagnosis(verdict="healthy", grade="confirmed", phase="ready")
UNCLEAR = a_diagnosis(verdict="undetermined", grade="undetermined", phase="unknown")
HUNG = a_diagnosis(verdict="blocked", grade="likely", phase="warmup")
COMPILER = Process(key=ProcessKey(500, 9), ppid=101, role="compiler")


def busy(index: int, ratio: float = 1.0, read_bytes: int = 0) -> Snapshot:
    """A round in which the rank has burnt so much of a core since the first one, and read so much."""
    stat = ProcessStat("S", 100, 0, 0, 0, 0, 1, 4096)
    clocks = Known((ThreadClock(101, int(index * ratio * 1e9), 0, index if ratio else 0),))
    moved = Progress(Known(ProcessIo(read_bytes * index, 0, index, 0, 0, 0)), 0, 0, 0, 0, 0)
    return snapshot(
        index,
        sample("cpu", RANK, CpuUse(stat, clocks, ()), (index + 1) * 10**9),
        sample("progress", RANK, moved, (index + 1) * 10**9),
        cpu(LAUNCHER),
    )


def with_(index: int, *samples: Sample, processes: tuple[Process, ...] = (LAUNCHER, RANK)) -> Snapshot:
    first = busy(index)
    return snapshot(index, *first.samples, *samples, processes=processes)


def rings(*newest: Snapshot) -> bool:
    """Whether the alarm rings at the last of these, which follow four busy rounds that were judged well."""
    alarm, before = Alarm(), tuple(busy(index) for index in range(4))
    alarm.judged(Trace(header=HEADER, stacks=(), snapshots=before))
    seen = [(*before, *newest[: number + 1]) for number in range(len(newest))]
    return [alarm.rings(Trace(header=HEADER, stacks=(), snapshots=rounds)) for rounds in seen][-1]


@pytest.mark.parametrize(
    ("newest", "expected"),
    [
        (with_(4), False),
        (with_(4, log("batch", kind="batch")), False),
        (with_(4, processes=(LAUNCHER, RANK, COMPILER)), False),
        (with_(4, log("load-weight-end")), True),
        (with_(4, log("exception", kind="crash")), True),
        (with_(4, cpu(LAUNCHER, "D")), True),
        (with_(4, cpu(LAUNCHER, "T")), True),
        (with_(4, sample("exits", RANK, Ended(9))), True),
        (with_(4, processes=(LAUNCHER,)), True),
    ],
)
def test_one_round(newest: Snapshot, expected: bool) -> None:
    """Members that leave or end, states that tell and lines that are no routine ring; the daily life does not."""
    assert rings(newest) is expected


def still(index: int) -> Snapshot:
    """A rank that burnt CPU until round 4 and sleeps since."""
    return busy(index, 4 / index)


def test_another_kind_of_slice_has_to_last() -> None:
    """Three slices in a row that are quiet ring, two do not: load comes and goes."""
    assert not rings(*(still(index) for index in (4, 5, 6)))
    assert rings(*(still(index) for index in (4, 5, 6, 7)))


def diagnosed_at(answers: dict[int, Diagnosis], rounds: list[Snapshot]) -> tuple[list[int], Pace]:
    """In which rounds a following diagnosed, and its pace at the end."""
    asked: list[int] = []

    def diagnose(trace: Trace) -> Diagnosis:
        number = trace.snapshots[-1].index
        asked.append(number)
        return answers[max(key for key in answers if key <= number)]

    observer = PlayedObserver(rounds)
    list(Following(attached(observer), Reasoning(diagnose, lambda _: True), Goal()).views())
    return asked[:-1], observer.pace


def test_a_launch_that_is_well_is_diagnosed_seldom() -> None:
    """Well: every tenth round; not well: every third."""
    rounds = [busy(index) for index in range(34)]
    well, pace = diagnosed_at({0: WELL}, rounds)
    assert (well, pace.calm) == ([3, 13, 23, 33], True)
    ill, pace = diagnosed_at({0: HUNG}, rounds)
    assert (ill, pace.calm) == (list(range(3, 34, 3)), False)


def test_suspicion_brings_the_close_look_back() -> None:
    """After a crash line the next diagnosis comes within three rounds, and a launch that is ill is not calm again."""
    rounds = [busy(index) for index in range(6)] + [with_(6, log("exception", kind="crash"))]
    rounds += [busy(index) for index in range(7, 14)]
    asked, pace = diagnosed_at({0: WELL, 6: UNCLEAR}, rounds)
    assert (asked, pace.calm) == ([3, 9, 12], False)


def test_thorough_rounds() -> None:
    """An observation begins with thorough rounds; calm ones are rare, and deep; suspicion begins with one at once."""
    pace = Pace()
    assert [index for index in range(11) if pace.next_round(index)] == [0, 5, 10]
    pace.calm_down()
    thorough = [index for index in range(11, 102) if pace.next_round(index)]
    assert thorough == [46, 76]
    assert all(pace.is_deep(index) for index in thorough)
    pace.suspect()
    assert [index for index in range(102, 120) if pace.next_round(index)] == [102, 107, 112, 117]
    pace.suspect()
    assert pace.next_round(122)


def test_calm_rounds_between_are_those_of_the_deep_readings() -> None:
    """A diagnosis of a launch that is well finds a stack that is new since the last one."""
    asked, _ = diagnosed_at({0: WELL}, [busy(index) for index in range(60)])
    assert {later - earlier for earlier, later in pairwise(asked)} == {CALM_EVERY}


def test_a_hang_is_announced_after_a_close_look() -> None:
    """A diagnosis of a calm observation that says hang is passed over; the next one, of close readings, is told."""
    observer = PlayedObserver([busy(index) for index in range(20)])

    def diagnose(trace: Trace) -> Diagnosis:
        return WELL if trace.snapshots[-1].index < 10 else HUNG

    seen = list(Following(attached(observer), Reasoning(diagnose, lambda _: True), Goal("hang")).views())
    assert [(view.diagnosis.verdict, view.end) for view in seen] == [("healthy", None), ("blocked", "settled")]
    assert observer.last_index == 16


def test_what_stays_as_it_is_is_looked_at_seldom() -> None:
    """A hang that has been told, and a launch that nothing can be said of, cost little after a minute."""
    for stays in (HUNG, UNCLEAR, WELL):
        asked, pace = diagnosed_at({0: stays}, [busy(index) for index in range(400)])
        pauses = [later - earlier for earlier, later in pairwise(asked) if later != earlier]
        assert pace.calm
        assert pauses == sorted(pauses)
        assert (
            set(pauses) == {CALM_EVERY, QUIET_EVERY, RESTING_EVERY}
            if stays is WELL
            else {3, QUIET_EVERY, RESTING_EVERY}
        )
        assert sum(pauses[: pauses.index(RESTING_EVERY)]) >= RESTING_S


def test_a_timer_that_comes_near_keeps_the_look_close() -> None:
    """What stays unclear is looked at closely as long as the launch may be ended by its own watchdog soon."""
    limit = LimitState(name="watchdog", seconds=300, left_s=50.0, latest_s=200.0, ends="ends")
    rounds = [busy(index) for index in range(120)]
    asked, pace = diagnosed_at({0: replace(UNCLEAR, limits=(limit,))}, rounds)
    assert ({later - earlier for earlier, later in pairwise(asked)}, pace.calm) == ({3}, False)
    overdue = replace(limit, left_s=0.0, latest_s=0.0)
    _, pace = diagnosed_at({0: replace(UNCLEAR, limits=(overdue,))}, rounds)
    assert pace.calm


def test_a_change_after_long_is_seen() -> None:
    """After minutes of rest a round that tells brings the close look back, and a new verdict is told."""
    rounds = [busy(index) for index in range(300)] + [with_(300, log("exception", kind="crash"))]
    rounds += [busy(index) for index in range(301, 320)]
    asked, _ = diagnosed_at({0: UNCLEAR, 300: HUNG}, rounds)
    assert min(number for number in asked if number >= 300) <= 303


def test_deep_readings_come_before_the_diagnosis() -> None:
    """Deep readings are due shortly before the next diagnosis, however late the last one was, and then as often."""
    pace = Pace()
    assert all(pace.is_deep(index) for index in range(5))
    pace.next_round(7)
    pace.calm_down(RESTING_EVERY)
    due = 7 + RESTING_EVERY - LEAD_ROUNDS
    assert [index for index in range(8, 200) if pace.is_deep(index)] == [
        due,
        due + RESTING_EVERY,
        due + 2 * RESTING_EVERY,
    ]


def test_ctrl_c_while_it_is_calm_gives_the_last_diagnosis() -> None:
    """The end of a calm observation, of which no deep reading is new, says what the last diagnosis said."""

    def diagnose(trace: Trace) -> Diagnosis:
        return WELL if trace.snapshots[-1].index < 16 else UNCLEAR

    observer = PlayedObserver([busy(index) for index in range(18)])
    seen = list(Following(attached(observer), Reasoning(diagnose, lambda _: True), Goal()).views())
    assert (seen[-1].end, seen[-1].diagnosis) == ("stopped", WELL)


def test_doubt_after_a_long_rest_has_its_patience() -> None:
    """A diagnosis after a rest that does not settle brings the close look back, and is told when it stays so."""
    asked: list[int] = []

    def settled(trace: Trace) -> bool:
        return trace.snapshots[-1].index < 200

    def diagnose(trace: Trace) -> Diagnosis:
        asked.append(trace.snapshots[-1].index)
        return WELL if settled(trace) else UNCLEAR

    observer = PlayedObserver([busy(index) for index in range(320)])
    views = Following(attached(observer), Reasoning(diagnose, settled), Goal(patience_s=30.0)).views()
    told = next(asked[-1] for view in views if view.diagnosis.verdict == "undetermined")
    doubted = next(number for number in asked if number >= 200)
    assert doubted + ROUNDS_BETWEEN in asked
    assert told >= doubted + 30


def test_a_short_timer_shortens_the_rest() -> None:
    """A launch whose watchdog is short is looked at several times within it, however long it has been well."""

    def longest_pause(**limits: float) -> int:
        observer, asked = PlayedObserver([busy(index) for index in range(400)]), list[int]()
        watched = attached(observer)
        launch = replace(watched.launch, limits=limits)

        def diagnose(trace: Trace) -> Diagnosis:
            asked.append(trace.snapshots[-1].index)
            return WELL

        reasoning = Reasoning(diagnose, lambda _: True)
        list(Following(Attached(launch, watched.observer, watched.tape), reasoning, Goal()).views())
        return max(later - earlier for earlier, later in pairwise(asked))

    assert longest_pause() == longest_pause(watchdog=300) == RESTING_EVERY
    assert longest_pause(watchdog=100, collective=600) == 25
    assert longest_pause(watchdog=20) == CALM_EVERY
