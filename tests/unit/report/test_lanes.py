"""Lanes: what a thread did is what its clocks say, and no thread is lost."""

from __future__ import annotations

from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Missing
from hangdoc.model.thread import ThreadState, ThreadWait, Waits
from hangdoc.report.lanes import MOST_SLICES, Lane, Lanes, lanes
from hangdoc.report.material import material
from hangdoc.trace.records import Trace
from tests.unit.features.synthetic import KEY, Readings, clock, cpu, dump, process, stack, trace
from tests.unit.report.recordings import golden, many_ranks_page


def of(made: Trace) -> Lanes:
    return lanes(material(made, "trace"))


def lane(found: Lanes, tid: int) -> Lane:
    (only,) = [one for one in found.shown if one.tid == tid]
    return only


def test_a_slice_is_the_difference_of_two_rounds() -> None:
    """Half a second on a CPU and a quarter waiting for one, within a second."""
    rounds: list[Readings] = [{("cpu", KEY): cpu(clock(0.5 * n, 0.25 * n, n))} for n in range(3)]
    first, second = lane(of(trace(rounds)), 100).slices
    assert first == second
    assert (first.doing, first.run_ratio, first.demand_ratio) == ("ran", 0.5, 0.75)


def test_what_was_not_read_is_no_sleep() -> None:
    """A round that was refused leaves both slices beside it unread, and the demand without them."""
    readings = [cpu(clock(0.0)), Missing("cpu", "denied"), cpu(clock(0.0)), cpu(clock(1.0, 0.0, 1))]
    found = lane(of(trace([{("cpu", KEY): one} for one in readings])), 100)
    assert [one.doing for one in found.slices] == ["unread", "unread", "ran"]
    assert found.demand_ratio == 1.0
    nothing = lane(of(trace([{("cpu", KEY): Missing("cpu", "denied")}] * 3)), 100)
    assert nothing.demand_ratio is None


def test_states_that_no_clock_shows() -> None:
    """Asleep beyond waking, stopped, and dead stand in the letters; of a thread that slept, nothing else does."""
    rounds: list[Readings] = []
    for letter in "SDTS":
        waits = Waits("x86_64", 0, (ThreadWait(100, letter, Missing("futex", "denied"), Missing("futex", "denied")),))
        rounds.append({("cpu", KEY): cpu(clock(), state=letter), ("futex", KEY): waits})
    assert [one.doing for one in lane(of(trace(rounds)), 100).slices] == ["disk", "stopped", "slept"]


def test_who_is_gone_has_ended() -> None:
    """A process that is in the roster no more did not sleep."""
    other = process(pid=200)
    rounds: list[Readings] = [{("cpu", KEY): cpu(clock()), ("cpu", other.key): cpu(clock(tid=200))}] * 2
    rounds += [{("cpu", KEY): cpu(clock())}] * 2
    rosters = [[process(), other]] * 2 + [[process()]] * 2
    assert [one.doing for one in lane(of(trace(rounds, rosters)), 200).slices] == ["slept", "ended", "ended"]


def test_long_recordings_lose_nothing() -> None:
    """Slices are put together where there are too many; totals between them stay what they were."""
    rounds: list[Readings] = [{("cpu", KEY): cpu(clock(0.5 * n, 0.0, n))} for n in range(200)]
    found = of(trace(rounds))
    slices = lane(found, 100).slices
    assert len(slices) == len(found.ends_s) == MOST_SLICES
    assert {round(one.run_ratio, 3) for one in slices} == {0.5}
    assert found.ends_s[-1] == 199.0


def test_every_thread_is_shown_or_counted() -> None:
    """Lanes with those that they stand for, and the counted rest, are all threads of all processes."""
    for made in (material(golden("healthy-tp2-serving"), "trace"), many_ranks_page()[0]):
        found = lanes(made)
        clocks: dict[ProcessKey, set[int]] = {}
        for shot in made.trace.snapshots:
            for sample in shot.samples:
                if sample.probe == "cpu" and sample.process is not None:
                    read = sample.reading
                    assert not isinstance(read, Missing)
                    clocks.setdefault(sample.process, set()).update(one.tid for one in read.value.clocks.value)  # type: ignore[union-attr]
        shown = sum(one.alike for one in found.shown) + sum(one.threads for one in found.rest)
        assert shown == sum(map(len, clocks.values()))


def test_who_has_to_move_comes_first() -> None:
    """The culprit's lane leads, and stands for nobody else."""
    first = lanes(many_ranks_page()[0]).shown[0]
    assert (first.accused, first.alike, first.process.rank) == (True, 1, {"tp": 1})


def test_names_and_places() -> None:
    """A lane has the thread's name and its innermost Python frame."""
    states = (ThreadState(101, "poller", "S", 0, 0, 0, 0, Missing("cpu", "denied"), Missing("cpu", "denied")),)
    rounds: list[Readings] = [
        {
            ("cpu", KEY): cpu(clock(), clock(0.5 * n, 0, n, tid=101), states=states),
            ("stacks", KEY): dump((100, 0), (101, 1)),
        }
        for n in range(4)
    ]
    made = trace(rounds, stacks=[stack("main"), stack("poll", "run")])
    found = lane(lanes(material(made, "trace", keep_names=True)), 101)
    assert (found.name, found.place) == ("poller", "poll (engine/program.py)")
