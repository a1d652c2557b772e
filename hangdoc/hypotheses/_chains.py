"""Who has to move at the end of a chain of waits: shared by the hypotheses that follow one."""

from __future__ import annotations

from collections.abc import Iterable

from hangdoc.features.edges import Edge
from hangdoc.features.features import Features, Member
from hangdoc.features.launch_waits import deadlocks, outsiders, standing_graph
from hangdoc.features.waits import ENDED, Thread, chain_ends, leads_to, reach, starts_at
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._waits import place
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.link import LinkEnd


def ends_behind(features: Features, start: Thread) -> tuple[Thread, ...]:
    """Return who has to move before a thread can go on: those that wait for nobody, else where the strong edges end.

    None when every chain ends in a circle or at a launcher.
    """
    graph = standing_graph(features)
    certain = tuple(end.thread for end in chain_ends(graph, start) if end.certain)
    if certain:
        return certain
    behind = sorted(reach(graph.strong, start))
    return tuple(thread for thread in behind if thread not in graph.strong and thread[0] not in graph.passive)


def who_moves(features: Features, pids: Iterable[int]) -> tuple[Thread, ...]:
    """Return who has to move for these processes to go on: they themselves, or whom they wait for, for certain.

    Of a chain that ends in a circle, the circle. A launcher that waits for somebody is left out: that may leave nobody.
    """
    graph = standing_graph(features)
    found: set[Thread] = set()
    for pid in pids:
        main = (pid, pid)
        behind = reach(graph.strong, main)
        waits = {one.thread for one in chain_ends(graph, main) if one.certain}
        waits = waits or {thread for circle in deadlocks(features) for thread in circle & behind}
        found |= waits or (set() if pid in graph.passive and main in graph.strong else {main})
    return tuple(sorted(thread for thread in found if thread[0] not in graph.passive or thread not in graph.strong))


def inferred_among(edges: Iterable[Edge]) -> str | None:
    """Return what is not proven about the holders of the locks that these edges lead through; None when all are."""
    return next((f"not proven: {edge.detail}" for edge in edges if edge.inferred), None)


def edges_behind(features: Features, start: Thread) -> tuple[Edge, ...]:
    """Return the strong edges of every chain of waits that begins at a thread."""
    graph = standing_graph(features)
    behind = reach(graph.strong, start) | {start}
    return tuple(edge for edge in graph.edges if not edge.weak and starts_at(edge) in behind)


def member_of(features: Features, pid: int) -> Member | None:
    """Return the member that has this pid; None for a process outside the launch."""
    return next((member for key, member in features.members.items() if key.pid == pid), None)


def thread_of(features: Features, thread: Thread) -> str:
    """Return how a sentence calls a thread: by its process alone when it is the main one."""
    pid, tid = thread
    member = member_of(features, pid)
    process = f"pid {pid}" if member is None else signs.name_of(member.process)
    return process if tid in {pid, ENDED} else f"thread {tid} of {process}"


def end_name(features: Features, end: LinkEnd) -> str:
    """Return how a sentence calls whoever is at the other end of a wait."""
    member = features.members.get(end.process)
    return f"pid {end.process.pid} ({end.command})" if member is None else signs.name_of(member.process)


def culprit_at(features: Features, thread: Thread, what: str) -> Culprit:
    """Return the end of a chain as the one who has to move; what: what it does, as the begin of the reason."""
    pid, tid = thread
    member = member_of(features, pid)
    if member is not None and tid != ENDED:
        return signs.culprit(member, f"{what} in {place(member, tid)}", tid)
    if member is not None:
        process, reason = (
            member.process,
            f"{_left_held(features, pid)}: the holder is dead",
        )
        return Culprit(
            pid=pid, start_ticks=process.key.start_ticks, tid=None, role=process.role, rank=process.rank, reason=reason
        )
    end = outsiders(features).get(pid)
    name = "a process" if end is None else end.command
    return Culprit(
        pid=pid,
        start_ticks=None if end is None else end.process.start_ticks,
        tid=None,
        role="other",
        rank={},
        outside=True,
        reason=f"{name}, outside the launch, {what}",
    )


def _left_held(features: Features, pid: int) -> str:
    """Say which lock nobody is left to release. Whose thread held it may not be known: processes share some."""
    edges = standing_graph(features).edges
    return next((edge.detail for edge in edges if leads_to(edge) == (pid, ENDED)), "a thread waits for a lock")
