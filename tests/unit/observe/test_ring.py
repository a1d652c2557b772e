"""The ring: hours of rounds in the memory of thirty, without forgetting what the reasoning needs."""

from __future__ import annotations

from hangdoc.model.http import Http
from hangdoc.model.link import Links
from hangdoc.model.log import LogTail
from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.reading import Known, Missing
from hangdoc.model.snapshot import Snapshot
from hangdoc.observe import ring as ring_module
from hangdoc.observe.ring import Ring
from tests.unit.observe.rounds import HEADER, LAUNCHER, RANK, alive, cpu, log, sample, snapshot, stack, stacks


def events(past: Snapshot) -> list[str]:
    tails = [s.reading.value for s in past.samples if isinstance(s.reading, Known)]
    return [event.name for tail in tails if isinstance(tail, LogTail) for event in tail.events]


def test_keeps_the_last_rounds_and_one_past() -> None:
    """However many rounds come, the trace has the last ones and one snapshot before them."""
    ring = Ring(HEADER, kept_rounds=5)
    for index in range(1000):
        ring.add(snapshot(index, cpu(RANK)))
    assert [one.index for one in ring.trace().snapshots] == [994, 995, 996, 997, 998, 999]


def test_the_past_has_no_clocks() -> None:
    """No rate can span what was let go: the past has no clock readings."""
    ring = Ring(HEADER, kept_rounds=1)
    for index in range(3):
        ring.add(snapshot(index, cpu(RANK)))
    assert ring.trace().snapshots[0].samples == ()


def test_a_round_that_comes_again_replaces_itself() -> None:
    """Late readings of the last round do not make it two."""
    ring = Ring(HEADER)
    ring.add(snapshot(0))
    ring.add(snapshot(0, cpu(RANK)))
    assert ring.trace().snapshots == (snapshot(0, cpu(RANK)),)


def test_milestones_are_kept() -> None:
    """The log's milestones stay in order after their rounds have gone; of repeated lines the last one stays."""
    ring = Ring(HEADER, kept_rounds=1)
    ring.add(snapshot(0, log("load-begin", first=True)))
    for index in range(1, 50):
        ring.add(snapshot(index, log("batch", kind="batch")))
    ring.add(snapshot(50, log("ready")))
    ring.add(snapshot(51))
    assert events(ring.trace().snapshots[0]) == ["load-begin", "batch", "ready"]
    first = ring.trace().snapshots[0].samples[0].reading
    assert isinstance(first, Known)
    assert isinstance(first.value, LogTail)
    assert first.value.first


def test_a_death_is_remembered() -> None:
    """A rank that died before the kept rounds is still in the roster of the past; a compiler is not."""
    compiler = Process(key=ProcessKey(500, 9), ppid=101, role="compiler")
    ring = Ring(HEADER, kept_rounds=2)
    ring.add(snapshot(0, processes=(LAUNCHER, RANK, compiler)))
    for index in range(1, 100):
        ring.add(snapshot(index, processes=(LAUNCHER,)))
    assert ring.trace().snapshots[0].processes == (LAUNCHER, RANK)


def test_the_last_dumps_are_kept_while_they_are_fresh() -> None:
    """Of older rounds each process keeps its last three stacks, but none older than two minutes."""
    ring = Ring(HEADER, kept_rounds=1)
    for index in range(0, 50, 10):
        ring.add(snapshot(index, stacks(RANK, 0, taken_ns=(index + 1) * 10**9)))
    ring.add(snapshot(51))
    assert len(ring.trace().snapshots[0].samples) == 3
    for index in range(52, 400):
        ring.add(snapshot(index))
    assert ring.trace().snapshots[0].samples == ()


def test_the_last_look_at_waits_is_kept() -> None:
    """Of the rounds that have gone each process keeps its last thorough look at whom its threads wait for."""
    ring = Ring(HEADER, kept_rounds=1)
    looks = [Links((), Known(()), thorough=index % 30 == 0) for index in range(70)]
    for index, look in enumerate(looks):
        ring.add(snapshot(index, sample("links", RANK, look, taken_ns=index)))
    (kept,) = ring.trace().snapshots[0].samples
    assert (kept.taken_ns, kept.reading) == (60, Known(looks[60]))


def test_old_stacks_are_let_go() -> None:
    """The table of stacks forgets those that no kept round refers to, and numbers stay what they were."""
    ring = Ring(HEADER, kept_rounds=2)
    for index in range(ring_module.MOST_STACKS + 10):
        ring.add(snapshot(index, stacks(RANK, ring.intern(stack(index)))))
    trace = ring.trace()
    assert sum(1 for one in trace.stacks if one) <= ring_module.MOST_STACKS
    last = trace.snapshots[-1].samples[0].reading
    assert isinstance(last, Known)
    assert trace.stacks[last.value.threads[0].stack] == stack(trace.snapshots[-1].index)  # type: ignore[union-attr]


def test_equal_stacks_get_one_number() -> None:
    """Interning is by value."""
    ring = Ring(HEADER)
    assert ring.intern(stack(1)) == ring.intern(stack(1)) != ring.intern(stack(2))


def test_the_last_answers_of_the_server_are_kept() -> None:
    """Of rounds that have gone the last twelve answers stay, the newest last."""
    ring = Ring(HEADER, kept_rounds=1)
    for index in range(40):
        answer = Http(port=index, listener="nobody", metrics=Missing("http", "unsupported"))
        ring.add(snapshot(index, sample("http", None, answer)))
    kept = [one.reading.value for one in ring.trace().snapshots[0].samples if isinstance(one.reading, Known)]
    assert [one.port for one in kept if isinstance(one, Http)] == list(range(27, 39))


def test_fewer_rounds_than_are_kept() -> None:
    """A trace of the last rounds is that of a ring which kept no more."""
    large, small = Ring(HEADER, 20), Ring(HEADER, 5)
    for index in range(30):
        for ring in (large, small):
            ring.add(alive(index))
    assert large.trace(5) == small.trace()
    assert large.trace(50) == large.trace()
