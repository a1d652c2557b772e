"""The waits as a graph to draw: whoever waits alike is one node, and who is waited for stands right of who waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from hangdoc.diagnosis import UNSURE
from hangdoc.model.diagnosis import Culprit, Wait, WaitEnd
from hangdoc.report.material import Material, together

Place: TypeAlias = tuple[int, int | None]
"""A pid, with a thread where threads of one process wait for each other."""

FEWEST_ALIKE = 3
"""Processes that wait alike from which on they are one node. Arbitrary: two are easier to read side by side."""

MOST_NODES = 30
"""Nodes that are drawn, those nearest to who has to move. Arbitrary: a screen."""


@dataclass(frozen=True)
class Node:
    """A process, a thread, or several that wait alike. column: 0 is the leftmost; title, below: its two lines."""

    number: int
    title: str
    below: str
    column: int
    accused: bool
    absent: bool = False


@dataclass(frozen=True)
class Arrow:
    """A wait, or several alike."""

    start: int
    end: int
    through: str
    count: int


@dataclass(frozen=True)
class Graph:
    """What is drawn. unsure: how many waits look the same when nothing is wrong, and are not drawn."""

    nodes: tuple[Node, ...]
    arrows: tuple[Arrow, ...]
    unsure: int


def is_sure(wait: Wait) -> bool:
    """Tell whether a wait means something."""
    return not wait.detail.endswith(UNSURE)


def graph(material: Material) -> Graph:
    """Return the graph of the waits."""
    waits = material.diagnosis.waits
    drawn = [wait for wait in waits if is_sure(wait)]
    split = {wait.from_.pid for wait in drawn if wait.from_.pid == wait.to.pid}
    ends = [(_place(wait.from_, split), _place(wait.to, split), wait) for wait in drawn]
    places = list(dict.fromkeys(place for start, end, _ in ends for place in (start, end)))
    if drawn or not waits:
        places += [(pid, None) for pid in sorted(material.accused) if not any(place[0] == pid for place in places)]
    groups = _groups(places, ends, material)
    return _drawn(groups, ends, material, unsure=len(waits) - len(drawn))


def _place(end: WaitEnd, split: set[int]) -> Place:
    return (end.pid, (end.tid or end.pid)) if end.pid in split else (end.pid, None)


_End: TypeAlias = tuple[Place, Place, Wait]


def _groups(places: list[Place], ends: list[_End], material: Material) -> list[list[Place]]:
    """Put places together that cannot be told apart: of one role, waiting for equals and waited for by equals.

    Rule: start from role and accusation, then split by what leads where until nothing splits any more.
    """
    label: dict[Place, object] = {place: _first_label(place, material) for place in places}
    for _ in range(len(places)):
        outgoing: dict[Place, set[object]] = {place: set() for place in places}
        incoming: dict[Place, set[object]] = {place: set() for place in places}
        for start, end, wait in ends:
            outgoing[start].add((wait.through, label[end]))
            incoming[end].add((wait.through, label[start]))
        refined = _numbered({p: (label[p], frozenset(outgoing[p]), frozenset(incoming[p])) for p in places})
        if len(set(refined.values())) == len(set(label.values())):
            break
        label = refined
    by_label: dict[object, list[Place]] = {}
    for place in places:
        by_label.setdefault(label[place], []).append(place)
    alike = [group for group in by_label.values() if len(group) >= FEWEST_ALIKE]
    alone = [[place] for group in by_label.values() if len(group) < FEWEST_ALIKE for place in group]
    return sorted([*alike, *alone], key=lambda group: places.index(group[0]))


def _first_label(place: Place, material: Material) -> object:
    accused = place[0] in material.accused
    role = next((one.role for key, one in material.processes.items() if key.pid == place[0]), None)
    return (role, place if accused or role is None or place[1] is not None else None)


def _numbered(labels: Mapping[Place, object]) -> dict[Place, object]:
    numbers: dict[object, int] = {}
    return {place: numbers.setdefault(label, len(numbers)) for place, label in labels.items()}


def _drawn(groups: list[list[Place]], ends: list[_End], material: Material, *, unsure: int) -> Graph:
    number_of = {place: number for number, group in enumerate(groups) for place in group}
    counts: dict[tuple[int, int, str], int] = {}
    for start, end, wait in ends:
        key = (number_of[start], number_of[end], wait.through)
        counts[key] = counts.get(key, 0) + 1
    arrows = [Arrow(*key, count) for key, count in counts.items()]
    columns = _columns(len(groups), arrows)
    nodes = [_node(number, group, columns[number], material) for number, group in enumerate(groups)]
    nodes += _absent(len(nodes), max(columns, default=-1) + 1, material.diagnosis.culprits)
    nearest = sorted(nodes, key=lambda node: (not node.accused, -node.column, node.number))[:MOST_NODES]
    kept = {node.number for node in nearest}
    shown = tuple(node for node in nodes if node.number in kept)
    return Graph(shown, tuple(one for one in arrows if {one.start, one.end} <= kept), unsure)


def _columns(count: int, arrows: Iterable[Arrow]) -> list[int]:
    """Return each node's column: one left of the leftmost that it waits for; within a circle, where it was entered."""
    targets: dict[int, set[int]] = {number: set() for number in range(count)}
    for arrow in arrows:
        if arrow.start != arrow.end:
            targets[arrow.start].add(arrow.end)
    depth = [0] * count
    for _ in range(count):
        before = list(depth)
        for number in range(count):
            reached = [depth[end] + 1 for end in targets[number] if number not in _reach(end, targets)]
            depth[number] = max(reached, default=0)
        if depth == before:
            break
    deepest = max(depth, default=0)
    return [deepest - one for one in depth]


def _reach(start: int, targets: Mapping[int, set[int]]) -> set[int]:
    found, todo = {start}, [start]
    while todo:
        for end in targets[todo.pop()] - found:
            found.add(end)
            todo.append(end)
    return found


def _node(number: int, group: list[Place], column: int, material: Material) -> Node:
    processes = [one for key, one in material.processes.items() for place in group if key.pid == place[0]]
    pids = sorted({pid for pid, _ in group})
    accused = any(pid in material.accused for pid in pids)
    if not processes:
        return Node(number, "outside the launch", f"pid {pids[0]}", column, accused)
    return Node(number, together(processes, most=3), _below(group, material), column, accused)


def _below(group: list[Place], material: Material) -> str:
    if len(group) > 1:
        return f"{len(group)} alike, pid {group[0][0]} ..."
    (pid, tid), *_ = group
    thread = "" if tid in (None, pid) else f" thread {tid}"
    state = next((one.state for one in material.diagnosis.processes if one.pid == pid and one.state), None)
    return f"pid {pid}{thread}" + (f", state {state}" if state and not thread else "")


def _absent(number: int, column: int, culprits: Iterable[Culprit]) -> list[Node]:
    """Return a node for each culprit that has no pid: nobody's arrow leads there, and still everybody waits for it."""
    gone = [one for one in culprits if one.pid is None]
    return [
        Node(number + n, one.reason[:60], "not there", max(0, column - 1), accused=True, absent=True)
        for n, one in enumerate(gone)
    ]
