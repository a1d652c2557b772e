"""Links of a window: what stands, which edges they are, and TCP bytes as work that can only be added."""

from __future__ import annotations

import pytest

from hangdoc.features.activity import activity, work
from hangdoc.features.features import Features, features
from hangdoc.features.index import Index
from hangdoc.features.launch_waits import latest_edges, standing_graph, standing_links
from hangdoc.features.links import link_edges
from hangdoc.features.motion import tcp_bytes
from hangdoc.features.waits import ChainEnd, chain_ends
from hangdoc.model.engine import Engine
from hangdoc.model.link import Link, LinkEnd, Links
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known, Missing
from hangdoc.model.thread import SystemCall
from tests.unit.features.synthetic import (
    KEY,
    Readings,
    clock,
    cpu,
    link,
    links,
    process,
    progress,
    trace,
    waits,
    whole,
)

OTHER = ProcessKey(101, 1)
READ = SystemCall(0, (3, 0, 1))


def seen(*rounds: Readings) -> Features:
    of = trace(rounds, processes=[process(100, "launcher"), process(101)])
    return features(of, Engine(name="generic"), whole(of), steady=True)


def moved(*received: int, segments: int = 0) -> Known[int] | Missing:
    """TCP bytes of rounds with these totals."""
    found = [links(received=total, segments=number * segments) for number, total in enumerate(received)]
    of = trace([{("links", KEY): one} for one in found])
    return tcp_bytes(Index(of), KEY, whole(of))


def test_received_bytes_are_work() -> None:
    """50 KB/s over TCP is work, without a byte in the counters of /proc."""
    rounds = [
        {("links", KEY): links(received=number * 50_000), ("progress", KEY): progress(), ("cpu", KEY): cpu(clock())}
        for number in range(4)
    ]
    of = trace(rounds)
    (member,) = features(of, Engine(name="generic"), whole(of), steady=True).members.values()
    assert activity(member) == Known("works")
    assert isinstance(member.flow, Known)
    assert work(member.flow.value) == "moves 50,000 bytes/s over TCP"


def test_growth_is_counted() -> None:
    """What counts is the growth; another connection under the same number counts whole."""
    assert moved(100_000, 150_000) == Known(50_000)
    assert moved(100_000, 70_000) == Known(70_000)


def test_wake_ups_over_tcp_are_no_work() -> None:
    """A store that is asked again and again moves 16 bytes a segment: no work, however often."""
    assert moved(0, 16_000, segments=1000) == Known(0)
    assert moved(0, 160_000, segments=1000) == Known(160_000)


def test_a_trace_older_than_the_probe_lacks_nothing() -> None:
    """Without any sample of the probe TCP moved nothing, so that old recordings keep their verdicts."""
    of = trace([{}, {}])
    assert tcp_bytes(Index(of), KEY, whole(of)) == Known(0)


def test_a_refused_reading_is_missing() -> None:
    """Where the probe was refused, TCP is unread, and nobody can be said to stand still."""
    of = trace([{("links", KEY): Missing("links", "denied"), ("progress", KEY): progress()}] * 3)
    assert tcp_bytes(Index(of), KEY, whole(of)) == Missing("links", "denied")
    (member,) = features(of, Engine(name="generic"), whole(of), steady=True).members.values()
    assert activity(member) == Missing("links", "denied")


def test_what_stands_was_there_twice() -> None:
    """Only a link that two thorough readings have stands; ordinary rounds say nothing about links."""
    first, second = link(100, 101), link(101, 100)
    of = seen(
        {("links", KEY): links(first)},
        {("links", KEY): links(thorough=False)},
        {("links", KEY): links(first, second)},
    )
    assert standing_links(of.members[KEY]) == Known((first,))
    assert len(latest_edges(of)) == 1


def test_one_reading_does_not_stand() -> None:
    """With one thorough reading it is not known what stands."""
    of = seen({("links", KEY): links(link(100, 101))}, {("links", KEY): links(thorough=False)})
    assert isinstance(standing_links(of.members[KEY]), Missing)


def test_a_refused_system_call_is_missing() -> None:
    """Where system calls were refused, whom anybody waits for is missing."""
    denied = Missing("links", "denied")
    of = seen(*[{("links", KEY): Links((), Known(()), unread=denied)}] * 2)
    assert standing_links(of.members[KEY]) == denied


def test_only_the_main_thread_speaks_without_stacks() -> None:
    """Which threads are Python's is not known without stacks: edges of others are left out."""
    of = seen(*[{("links", KEY): links(link(100, 101), link(105, 101))}] * 2)
    assert [edge.from_tid for edge in latest_edges(of)] == [100]


def test_who_inherited_an_end_is_left_out() -> None:
    """Edges go to those who hold an end of their own, and never to the waiting process itself."""
    ends = (
        LinkEnd(ProcessKey(102, 1), True),
        LinkEnd(ProcessKey(103, 1), True, inherited=True),
        LinkEnd(KEY, True, inherited=True),
    )
    one = Link(tid=100, through="pipe", detail="", ends=Known(ends))
    assert [edge.to_pid for edge in link_edges({KEY: [one]})] == [102]
    only_inherited = Link(tid=100, through="pipe", detail="", ends=Known(ends[1:]), weak=True)
    assert [(edge.to_pid, edge.weak) for edge in link_edges({KEY: [only_inherited]})] == [(103, True)]


@pytest.mark.parametrize(
    ("call", "end"), [(SystemCall(230, (0, 0)), True), (None, True), (READ, False)], ids=["sleeps", "runs", "reads"]
)
def test_who_waits_for_nobody_is_certain(call: SystemCall | None, end: bool) -> None:
    """The end of a chain is certain when its thread was seen to sleep or run, not when its wait is merely unknown."""
    of = seen(
        *[
            {
                ("links", KEY): links(link(100, 101)),
                ("links", OTHER): links(),
                ("futex", OTHER): waits((101, call)),
            }
        ]
        * 2
    )
    assert chain_ends(standing_graph(of), (100, 100)) == (ChainEnd((101, 101), end),)


def test_a_launcher_is_no_end() -> None:
    """A chain that ends at the launcher names nobody."""
    of = seen(*[{("links", OTHER): links(link(101, 100)), ("links", KEY): links(), ("futex", KEY): waits()}] * 2)
    assert chain_ends(standing_graph(of), (101, 101)) == ()


def test_somebody_outside_is_a_certain_end() -> None:
    """A process outside the launch, at the end of strong edges, has to move for certain."""
    outside = link(101, 999, member=False, through="file-lock")
    of = seen(*[{("links", KEY): links(link(100, 101)), ("links", OTHER): links(outside)}] * 2)
    assert chain_ends(standing_graph(of), (100, 100)) == (ChainEnd((999, 999), True),)
    assert "outside the launch" in latest_edges(of)[-1].detail
