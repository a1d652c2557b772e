"""The wait-for graph over random edges: it ends, it is the same every time, and it invents nobody."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from hangdoc.features.edges import Edge
from hangdoc.features.waits import WaitGraph, chain, chain_ends, circle_edges, circles, leads_to, starts_at

PIDS = st.integers(1, 8)


def edge(start: int, tid: int | None, end: int, to_tid: int | None, weak: bool) -> Edge:
    return Edge(start, tid, end, to_tid, "pipe", "", weak)


TIDS = st.none() | st.integers(1, 10)
EDGES = st.lists(st.builds(edge, PIDS, TIDS, PIDS, TIDS, st.booleans()), max_size=24)
FREE = st.frozensets(st.tuples(PIDS, st.integers(1, 10)), max_size=20)
PASSIVE = st.frozensets(PIDS, max_size=1)


@st.composite
def graphs(draw: st.DrawFn) -> WaitGraph:
    """A graph as readings give it: who has an edge is never said to wait for nobody."""
    edges = tuple(draw(EDGES))
    free = draw(FREE) - {starts_at(one) for one in edges}
    return WaitGraph(edges, free, draw(PASSIVE))


def everybody(graph: WaitGraph) -> set[tuple[int, int]]:
    return {starts_at(one) for one in graph.edges} | {leads_to(one) for one in graph.edges}


@given(graphs(), st.randoms(use_true_random=False))
def test_the_order_of_edges_means_nothing(graph: WaitGraph, random: Random) -> None:
    """Whatever order the readings came in, circles, ends and chains are the same."""
    shuffled = list(graph.edges)
    random.shuffle(shuffled)
    other = WaitGraph(tuple(shuffled), graph.free, graph.passive)
    assert circles(graph) == circles(other)
    for start in everybody(graph):
        assert chain_ends(graph, start) == chain_ends(other, start)
        for end in chain_ends(graph, start):
            assert chain(graph, start, end.thread) == chain(other, start, end.thread)


@given(graphs(), st.permutations(range(1, 11)))
def test_the_numbers_of_processes_mean_nothing(graph: WaitGraph, numbers: list[int]) -> None:
    """With every process and thread renumbered the same ones are in circles and at the ends."""

    def renamed(number: int) -> int:
        return numbers[number - 1] + 100

    def moved(one: Edge) -> Edge:
        tids = (None if tid is None else renamed(tid) for tid in (one.from_tid, one.to_tid))
        return edge(renamed(one.from_pid), next(tids), renamed(one.to_pid), next(tids), one.weak)

    def place(thread: tuple[int, int]) -> tuple[int, int]:
        return renamed(thread[0]), renamed(thread[1])

    other = WaitGraph(
        tuple(map(moved, graph.edges)), frozenset(map(place, graph.free)), frozenset(map(renamed, graph.passive))
    )
    assert set(circles(other)) == {frozenset(map(place, circle)) for circle in circles(graph)}
    for start in everybody(graph):
        ends = {(place(end.thread), end.certain) for end in chain_ends(graph, start)}
        assert {(end.thread, end.certain) for end in chain_ends(other, place(start))} == ends


@given(graphs(), st.data())
def test_an_edge_less_invents_nobody(graph: WaitGraph, data: st.DataObject) -> None:
    """Without some edges nobody becomes certain who was not, and no circle appears."""
    left = data.draw(st.lists(st.sampled_from(graph.edges), unique=True)) if graph.edges else []
    less = WaitGraph(tuple(left), graph.free, graph.passive)
    for circle in circles(less):
        assert any(circle <= whole for whole in circles(graph))
    for start in everybody(graph):
        certain = {end.thread for end in chain_ends(graph, start) if end.certain}
        assert {end.thread for end in chain_ends(less, start) if end.certain} <= certain


@given(graphs())
def test_chains_hang_together(graph: WaitGraph) -> None:
    """The chain to an end starts at the waiting thread, ends there, and has no gap; no passive process is an end."""
    for start in everybody(graph):
        for end in chain_ends(graph, start):
            links = chain(graph, start, end.thread)
            assert links
            assert (starts_at(links[0]), leads_to(links[-1])) == (start, end.thread)
            assert all(leads_to(one) == starts_at(other) for one, other in pairwise(links))
            assert end.thread[0] not in graph.passive


@given(graphs())
def test_circles_are_made_of_strong_edges(graph: WaitGraph) -> None:
    """Every thread of a circle waits for another of it, and weak edges make none."""
    for circle in circles(graph):
        within = circle_edges(graph, circle)
        assert {starts_at(one) for one in within} == circle == {leads_to(one) for one in within}
    assert circles(WaitGraph(tuple(one for one in graph.edges if one.weak))) == ()
