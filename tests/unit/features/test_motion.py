"""Rates of threads over a window: demand, threads that come and go, and what cannot be told."""

from __future__ import annotations

from hangdoc.features.activity import activity
from hangdoc.features.features import Features, features
from hangdoc.features.index import Index
from hangdoc.features.motion import Motion, motion
from hangdoc.model.engine import Engine
from hangdoc.model.reading import Known, Missing
from hangdoc.model.thread import CpuUse
from hangdoc.trace.records import Trace
from tests.unit.features.synthetic import KEY, clock, cpu, progress, trace, whole

ENGINE = Engine(name="generic")


def moved(*uses: CpuUse) -> Motion:
    of = trace([{("cpu", KEY): use} for use in uses])
    found = motion(Index(of), KEY, whole(of), 100)
    assert isinstance(found, Known)
    return found.value


def test_demand_counts_the_wait_for_a_cpu() -> None:
    """A spin on a full machine runs half the time and wants to run all of it."""
    busiest = moved(cpu(clock(1.0, 1.0, 5)), cpu(clock(2.0, 2.0, 105)), cpu(clock(3.0, 3.0, 205))).busiest()
    assert busiest is not None
    assert (busiest.run_ratio, busiest.demand_ratio, busiest.slices) == (1.0, 2.0, 200)


def test_a_thread_that_began_in_the_window_counts_from_zero() -> None:
    """All that a new thread ran, it ran within the window."""
    threads = moved(cpu(clock()), cpu(clock(), clock(0.5, 0.0, 3, tid=101))).threads
    assert isinstance(threads, Known)
    assert threads.value[101].run_ratio == 0.5


def test_a_thread_that_ended_is_not_there() -> None:
    """A thread that is gone at the end is no thread that stands still."""
    threads = moved(cpu(clock(), clock(0.5, tid=101)), cpu(clock())).threads
    assert isinstance(threads, Known)
    assert set(threads.value) == {100}


def test_one_reading_is_no_rate() -> None:
    """Nothing is said from a single reading."""
    of = trace([{("cpu", KEY): cpu(clock())}, {}])
    assert isinstance(motion(Index(of), KEY, whole(of), 100), Missing)


def seen(of: Trace) -> Features:
    return features(of, ENGINE, whole(of), steady=True)


def test_activity_of_a_member() -> None:
    """Reads are work; demand without any is a spin; a thread without a time slice stood still."""
    cases = {
        "works": (clock(0.1, slices=9), 10 * 2**20),
        "spins": (clock(0.6, 0.4, 9), 0),
        "stirs": (clock(0.01, slices=9), 0),
        "still": (clock(), 0),
    }
    for expected, (end, read) in cases.items():
        of = trace(
            [
                {("cpu", KEY): cpu(clock()), ("progress", KEY): progress()},
                {("cpu", KEY): cpu(end), ("progress", KEY): progress(read)},
            ]
        )
        assert activity(seen(of).members[KEY]) == Known(expected)


def test_activity_without_the_counters_is_missing() -> None:
    """Without the flow nobody is said to spin or to stand still."""
    of = trace([{("cpu", KEY): cpu(clock())}, {("cpu", KEY): cpu(clock())}])
    assert isinstance(activity(seen(of).members[KEY]), Missing)
