"""Who waits for whom in a launch: the edges of all its readings, as one graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from hangdoc.features.activity import waiting
from hangdoc.features.edges import Edge
from hangdoc.features.features import Features, Member
from hangdoc.features.links import STANDING_READINGS, link_edges, order, standing
from hangdoc.features.locks import PROBE as LOCKS
from hangdoc.features.locks import lock_edges
from hangdoc.features.waits import ENDED, Thread, WaitGraph, circles, leads_to, starts_at
from hangdoc.model.link import Link, LinkEnd
from hangdoc.model.locks import Locks
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.procfs.syscalls import ends_by_itself

WAITS_FOR_NOBODY = frozenset({"sleep"})
"""System calls that end by themselves: whoever is in one has to move."""

STOPS = frozenset({"signal", "freezer"})
"""Causes of their own: who is stopped waits for nobody of the launch."""


def latest_edges(features: Features) -> tuple[Edge, ...]:
    """Return the edges as they were read last; those to the holder of an interpreter lock, which may be many, last."""
    newest = {
        member.key: member.links.value[-1].links
        for member in features.members.values()
        if isinstance(member.links, Known)
    }
    locks = _lock_edges(features)
    edges = (*link_edges(_of_workers(features, newest, locks)), *locks)
    return tuple(sorted(edges, key=lambda edge: (edge.through == "gil", *order(edge))))


def _last_locks(member: Member) -> tuple[Locks, ...]:
    readings = member.locks.value if isinstance(member.locks, Known) else ()
    return tuple(locks for _, locks in readings[-STANDING_READINGS:])


@lru_cache(maxsize=2)
def standing_lock_edges(features: Features) -> tuple[Edge, ...]:
    """Return the waits for locks that stood over two readings."""
    return tuple(edge for edge in _lock_edges(features) if not edge.weak)


@lru_cache(maxsize=2)
def _lock_edges(features: Features) -> tuple[Edge, ...]:
    edges = lock_edges({key.pid: _last_locks(member) for key, member in features.members.items()})
    members = {key.pid: member for key, member in features.members.items()}
    return tuple(replace(edge, weak=True) if _may_end(members[edge.from_pid], edge) else edge for edge in edges)


def _may_end(member: Member, edge: Edge) -> bool:
    """Tell whether a wait for a lock ends by itself, or is not known not to: then nobody has to move for it.

    Who waits for the interpreter lock asks again every 5 ms, whatever the timeout of a single wait.
    """
    if edge.through == "gil":
        return False
    last = member.waits_of.get(edge.from_tid or member.key.pid)
    if not last:
        return True
    machine, wait = last[-1]
    if isinstance(wait.system_call, Missing) or wait.system_call.value is None:
        return True
    return ends_by_itself(wait.system_call.value, machine)


def unread_locks(member: Member) -> Missing | None:
    """Return why it is not known which waits for locks stood over two readings; None when it is.

    In a trace that is older than the probe nothing was to be read, and so nothing is missing.
    """
    if isinstance(member.locks, Missing):
        return member.locks
    if len(member.locks.value) == 1:
        return Missing(LOCKS, "not-taken", "the locks were read only once")
    return None


def unread_waits(member: Member) -> Missing | None:
    """Return why it is not known whom each thread of a process waits for, parts of readings included; None when it is.

    Python's locks where the interpreter's layout is not known could never be read, and so are not missing.
    """
    for whole in (member.waits, standing_links(member), unread_locks(member)):
        if isinstance(whole, Missing):
            return whole
    for found in member.waits_of.values():
        if isinstance(found[-1][1].system_call, Missing):
            return found[-1][1].system_call
    for locks in _last_locks(member):
        if isinstance(locks.python, Missing) and locks.python.reason != "unsupported":
            return locks.python
    return None


def waits_in_shared_memory(member: Member, tid: int) -> bool:
    """Tell whether a thread is seen to wait, without a timeout, for a futex in memory that processes share.

    The join of a thread is a futex without the private flag, too, but not in shared memory.
    """
    wait = waiting(member, tid)
    if isinstance(wait, Missing) or wait.value is None or not wait.value.untimed or wait.value.private:
        return False
    return any(futex.tid == tid and futex.shared_key for locks in _last_locks(member)[-1:] for futex in locks.futexes)


def woken_from_outside(member: Member, tid: int) -> str | None:
    """Say who outside the launch may end a wait in shared memory, or that this is not known; None when nobody may."""
    for locks in _last_locks(member):
        for futex in locks.futexes:
            if futex.tid != tid or not futex.shared_key:
                continue
            if isinstance(futex.outsiders, Missing):
                return f"who outside the launch has the memory that thread {tid} waits in is not known"
            if futex.outsiders.value:
                end = futex.outsiders.value[0]
                return f"pid {end.process.pid} ({end.command}), outside the launch, has the memory that it waits in"
            if futex.by_name:
                return f"the memory that thread {tid} waits in has a name, and anybody may open it"
    return None


def joins_a_thread(member: Member, tid: int) -> bool:
    """Tell whether a thread waits for the end of another thread of its process: the kernel's wake-up for a join."""
    return any(
        futex.tid == tid and futex.kind == "join" for locks in _last_locks(member)[-1:] for futex in locks.futexes
    )


def rank_that_waits_for(features: Features, member: Member) -> Member | None:
    """Return a rank that waited for a word from this member, and from nobody else, over two readings.

    Parents and children do not count: a parent that reads its child's output and a worker that waits for its parent's
    tasks or end look the same when all is well.
    """
    ranks = {rank.key.pid: rank for rank in features.movers}
    parents = {key.pid: one.process.ppid for key, one in features.members.items()}
    for edge in standing_graph(features).edges:
        if edge.weak or edge.to_pid != member.key.pid or edge.through not in WORDS or edge.from_pid not in ranks:
            continue
        if member.key.pid not in _ancestors(parents, edge.from_pid) | {edge.from_pid} and (
            edge.from_pid not in _ancestors(parents, member.key.pid)
        ):
            return ranks[edge.from_pid]
    return None


WORDS = frozenset({"pipe", "socket", "tcp"})
"""Through what one process has another's word."""


def _ancestors(parents: Mapping[int, int], pid: int) -> set[int]:
    found: set[int] = set()
    while pid in parents and parents[pid] not in found:
        pid = parents[pid]
        found.add(pid)
    return found


@lru_cache(maxsize=2)
def standing_graph(features: Features) -> WaitGraph:
    """Return the graph of the waits that stood over two readings."""
    lasting: dict[ProcessKey, tuple[Link, ...]] = {}
    for member in features.members.values():
        links = standing_links(member)
        if isinstance(links, Known):
            lasting[member.key] = links.value
    locks = standing_lock_edges(features)
    edges = tuple(sorted((*link_edges(_of_workers(features, lasting, locks)), *locks), key=order))
    launchers = {key.pid for key, member in features.members.items() if member.process.role == "launcher"}
    return WaitGraph(edges, _free(features, edges), frozenset(launchers))


def standing_links(member: Member) -> Reading[tuple[Link, ...]]:
    """Return the links of a member that stood over two readings."""
    return member.links if isinstance(member.links, Missing) else standing(member.links.value)


@lru_cache(maxsize=2)
def deadlocks(features: Features) -> tuple[frozenset[Thread], ...]:
    """Return the circles of the waits that stood over two readings."""
    return circles(standing_graph(features))


def outsiders(features: Features) -> dict[int, LinkEnd]:
    """Return the processes outside the launch that somebody in it waits for."""
    return {
        end.process.pid: end
        for member in features.members.values()
        if isinstance(member.links, Known)
        for link in member.links.value[-1].links
        if isinstance(link.ends, Known)
        for end in link.ends.value
        if not end.member
    }


def worker_tids(member: Member) -> frozenset[int]:
    """Return the threads whose waits say something: Python threads that do not exist to wait, and the main thread.

    Pools of native helper threads wait in polls for ever in healthy and hung servers alike.
    """
    if isinstance(member.dumps, Missing):
        return frozenset({member.key.pid})
    found: dict[str, frozenset[int]] = member.found
    if "worker-tids" not in found:
        working = {tid for tid, seen in member.dumps.value.threads.items() if not seen.is_helper}
        found["worker-tids"] = frozenset(working | {member.key.pid})
    return found["worker-tids"]


def _of_workers(
    features: Features, links: Mapping[ProcessKey, Iterable[Link]], locks: Iterable[Edge]
) -> dict[ProcessKey, tuple[Link, ...]]:
    """Leave the links of other threads out, except of those that hold a lock which somebody waits for."""
    holders = {leads_to(edge) for edge in locks}
    found: dict[ProcessKey, tuple[Link, ...]] = {}
    for key, own in links.items():
        workers = worker_tids(features.members[key])
        found[key] = tuple(link for link in own if link.tid in workers or (key.pid, link.tid) in holders)
    return found


def _free(features: Features, edges: Iterable[Edge]) -> frozenset[Thread]:
    """Return the threads that are known to wait for nobody: outside the launch, or seen not to wait."""
    waiters = {starts_at(edge) for edge in edges}
    members = {key.pid: member for key, member in features.members.items()}
    targets = {leads_to(edge) for edge in edges} - waiters
    return frozenset(
        thread for thread in targets if thread[0] not in members or _waits_for_nobody(members[thread[0]], thread[1])
    )


def _waits_for_nobody(member: Member, tid: int) -> bool:
    if tid == ENDED:
        return True
    links = standing_links(member)
    if not isinstance(links, Known) or unread_locks(member) is not None:
        return False
    own = [link for link in links.value if link.tid == tid]
    if own:
        return all(link.through in STOPS for link in own)
    wait = waiting(member, tid)
    return isinstance(wait, Known) and (wait.value is None or wait.value.call in WAITS_FOR_NOBODY)
