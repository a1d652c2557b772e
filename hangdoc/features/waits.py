"""The wait-for graph: circles of waits, and the end of the chain from a waiting thread: who has to move."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from hangdoc.features.edges import Edge
from hangdoc.features.links import order

Thread: TypeAlias = tuple[int, int]
"""A process and one of its threads.

A process without a thread stands for its main thread, which does the work in every engine. That fails where another
thread should answer: whoever draws a conclusion looks whether the others could.
"""


ENDED = 0
"""Stands for any thread of a process that is no more: it waits for nobody, and nobody can wait for it to move."""


@dataclass(frozen=True)
class ChainEnd:
    """A thread that has to move. certain: it is known to wait for nobody, and only strong edges lead to it."""

    thread: Thread
    certain: bool


@dataclass(frozen=True)
class WaitGraph:
    """Edges of any source.

    free: threads that are known to wait for nobody (they run, sleep, are stopped, or are outside the launch);
    passive: processes that are never the culprit (a launcher, which waits by design).
    """

    edges: tuple[Edge, ...]
    free: frozenset[Thread] = frozenset()
    passive: frozenset[int] = frozenset()

    @cached_property
    def strong(self) -> Mapping[Thread, frozenset[Thread]]:
        """Whom each thread waits for, for certain."""
        return _targets(edge for edge in self.edges if not edge.weak)

    @cached_property
    def followed(self) -> Mapping[Thread, frozenset[Thread]]:
        """Whom each thread waits for: by its weak edges only where it has no strong one."""
        return {**_targets(edge for edge in self.edges if edge.weak), **self.strong}


def starts_at(edge: Edge) -> Thread:
    """Return who waits."""
    return edge.from_pid, edge.from_pid if edge.from_tid is None else edge.from_tid


def leads_to(edge: Edge) -> Thread:
    """Return whom it waits for."""
    if edge.ended:
        return edge.to_pid, ENDED
    return edge.to_pid, edge.to_pid if edge.to_tid is None else edge.to_tid


def _targets(edges: Iterable[Edge]) -> dict[Thread, frozenset[Thread]]:
    found: dict[Thread, set[Thread]] = {}
    for edge in edges:
        found.setdefault(starts_at(edge), set()).add(leads_to(edge))
    return {thread: frozenset(targets) for thread, targets in found.items()}


def reach(targets: Mapping[Thread, frozenset[Thread]], start: Thread) -> frozenset[Thread]:
    """Return every thread that a chain of waits leads to; the start itself only when it is in a circle."""
    seen: set[Thread] = set()
    left = list(targets.get(start, ()))
    while left:
        thread = left.pop()
        if thread not in seen:
            seen.add(thread)
            left += targets.get(thread, ())
    return frozenset(seen)


def circles(graph: WaitGraph) -> tuple[frozenset[Thread], ...]:
    """Return the deadlocks: each largest set of threads that all wait for each other by strong edges, sorted."""
    reached = {thread: reach(graph.strong, thread) for thread in graph.strong}
    found = {
        frozenset(other for other in behind if thread in reached.get(other, ()))
        for thread, behind in reached.items()
        if thread in behind
    }
    return tuple(sorted(found, key=sorted))


def circle_edges(graph: WaitGraph, circle: frozenset[Thread]) -> tuple[Edge, ...]:
    """Return the strong edges within a circle, in their order."""
    return tuple(
        edge
        for edge in sorted(graph.edges, key=order)
        if not edge.weak and starts_at(edge) in circle and leads_to(edge) in circle
    )


def chain_ends(graph: WaitGraph, start: Thread) -> tuple[ChainEnd, ...]:
    """Return who has to move before a thread can go on; none when all chains end in circles or at passive processes.

    Whoever is certain stays so only as long as its edges are there: an end is certain because it is known to wait for
    nobody, never because no edge of it was found.
    """
    behind = reach(graph.followed, start)
    for_certain = reach(graph.strong, start) & graph.free
    ends = {thread for thread in behind if thread not in graph.followed} | for_certain
    return tuple(ChainEnd(thread, thread in for_certain) for thread in sorted(ends) if thread[0] not in graph.passive)


def chain(graph: WaitGraph, start: Thread, end: Thread) -> tuple[Edge, ...]:
    """Return the edges of a shortest chain from one thread to another; the first in their order among equals."""
    by_start: dict[Thread, list[Edge]] = {}
    for edge in sorted(graph.edges, key=order):
        if leads_to(edge) in graph.followed.get(starts_at(edge), ()):
            by_start.setdefault(starts_at(edge), []).append(edge)
    came_by: dict[Thread, Edge] = {}
    left = deque([start])
    while left:
        thread = left.popleft()
        for edge in by_start.get(thread, ()):
            if leads_to(edge) not in came_by:
                came_by[leads_to(edge)] = edge
                left.append(leads_to(edge))
    path: list[Edge] = []
    at = end
    while at in came_by and (at != start or not path):
        path.append(came_by[at])
        at = starts_at(came_by[at])
    return tuple(reversed(path))
