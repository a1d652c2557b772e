"""Gather engine processes whose launcher is gone into launches, never two launches into one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from hangdoc.launch.age import by_age, is_older
from hangdoc.launch.table import Entry, pipe_ends

STANDARD_DESCRIPTORS = 3
"""Descriptors 0 to 2 tell nothing: two launches may write into one pipe."""


def gather(
    tops: list[Entry],
    settled: Sequence[tuple[Entry, int]],
    outsiders: Iterable[Entry],
    hosts: Mapping[int, int],
    proc: Path,
) -> Iterator[tuple[int, int, str]]:
    """Divide orphans into launches; yields pid, root and the reason.

    settled: members of launches whose launcher lives, with its root; outsiders: who else lives and is no orphan, nor
    what an orphan may have lost; hosts: the notebook or test runner that started an orphan and lives, by its pid.

    Rule: processes that hold ends of the same pipe (beyond standard input, output and error) are of one launch: all
    children of one launcher inherit the pipe to its resource_tracker. A pipe that an outsider holds, too, or a launch
    that is itself a child of multiprocessing, was made above: every launch of one driver or notebook has inherited it,
    and it tells nothing. Orphans of one process group are of one launch too (one that leads a group of its own counts
    to its session's), unless two of them carry the same title (two schedulers of rank 0 are of two launches) or pipes
    divide them. Two engines, and children of two hosts, are never one launch. The root is the oldest with a title.

    It works because Python opens its descriptors not to be inherited, multiprocessing's own excepted. It fails when the
    pipes may not be read and one process group holds the remains of two launches with no title in common: they come
    out as one. Remains of one launch in several process groups that share no pipe come out as several: never a guess.
    """
    held = {entry.pid: _private_pipes(proc, entry) for entry in tops}
    wanted = frozenset().union(*held.values())
    above = _made_above(settled, outsiders, proc) if wanted else frozenset()
    pipes = {pid: own - above for pid, own in held.items()}
    owners = _live_owners(settled, wanted, proc) if wanted else {}
    began = {entry.pid: entry.key for entry, root in settled if entry.pid == root}
    for cluster in _clusters(tops, pipes, {pid: own & above for pid, own in held.items()}, hosts):
        roots = {owners[inode] for entry in cluster for inode in pipes[entry.pid] if inode in owners}
        # What is older than a launch was left behind by an earlier one, however much the two inherited together.
        roots = {root for root in roots if all(root not in began or is_older(began[root], e.key) for e in cluster)}
        oldest = min(cluster, key=lambda entry: (not entry.sighting.is_titled, by_age(entry.key))).pid
        root = roots.pop() if len(roots) == 1 else oldest
        yield from ((entry.pid, root, _reason(entry.pid, root, oldest, hosts)) for entry in cluster)


def _reason(pid: int, root: int, oldest: int, hosts: Mapping[int, int]) -> str:
    if root != oldest:
        return f"shares a pipe with the launch of {root}"
    if pid in hosts:
        return f"{'the oldest of the engine' if pid == root else 'of the engine'} that {hosts[pid]} runs"
    return "oldest of a launch whose launcher is gone" if pid == root else f"left behind by the same launcher as {root}"


def _private_pipes(proc: Path, entry: Entry) -> frozenset[int]:
    ends = pipe_ends(proc, entry.key) or {}
    return frozenset(inode for number, inode in ends.items() if number >= STANDARD_DESCRIPTORS)


def _made_above(settled: Sequence[tuple[Entry, int]], outsiders: Iterable[Entry], proc: Path) -> frozenset[int]:
    """Return the pipes that whoever started several launches may have given to all of them."""
    inherits = [entry for entry, root in settled if entry.pid == root and entry.sighting.is_kin]
    held = [set((pipe_ends(proc, entry.key) or {}).values()) for entry in (*outsiders, *inherits)]
    return frozenset().union(*held)


def _live_owners(settled: Sequence[tuple[Entry, int]], wanted: frozenset[int], proc: Path) -> dict[int, int]:
    """Map pipe to the live launch that holds it; a pipe that two launches hold tells nothing."""
    owners: dict[int, set[int]] = {}
    for entry, root in settled:
        for inode in _private_pipes(proc, entry) & wanted:
            owners.setdefault(inode, set()).add(root)
    return {inode: roots.pop() for inode, roots in owners.items() if len(roots) == 1}


def _clusters(
    tops: list[Entry],
    pipes: dict[int, frozenset[int]],
    inherited: dict[int, frozenset[int]],
    hosts: Mapping[int, int],
) -> list[list[Entry]]:
    clusters = [part for cluster in _by_pipe(tops, pipes) for part in _divided(cluster, hosts)]
    # Only a band with a process in the launcher's own group: a dead terminal's session holds jobs of every launch.
    for band, host in {(entry.group, hosts.get(entry.pid)) for entry in tops}:
        inside = [c for c in clusters if all((_band(e), hosts.get(e.pid)) == (band, host) for e in c)]
        engines = {e.sighting.engine for cluster in inside for e in cluster if e.sighting.is_titled}
        for engine in engines:
            theirs = [c for c in inside if len(engines) == 1 or any(e.sighting.engine == engine for e in c)]
            if len(theirs) > 1 and _are_one(theirs, pipes, inherited):
                clusters = [cluster for cluster in clusters if cluster not in theirs]
                clusters.append([entry for cluster in theirs for entry in cluster])
    return clusters


def _divided(cluster: list[Entry], hosts: Mapping[int, int]) -> list[list[Entry]]:
    """Divide what a pipe joins by host and engine; what has no title stands alone where there are two engines."""
    parts: dict[object, list[Entry]] = {}
    engines = {entry.sighting.engine for entry in cluster if entry.sighting.is_titled}
    for entry in cluster:
        whose = entry.sighting.engine if entry.sighting.is_titled else entry.pid
        parts.setdefault((hosts.get(entry.pid), whose if len(engines) > 1 else None), []).append(entry)
    return list(parts.values())


def _band(entry: Entry) -> int:
    """The process group it was started in: one that leads a group of its own was started in that of its session."""
    return entry.session if entry.pid == entry.group else entry.group


def _by_pipe(tops: list[Entry], pipes: dict[int, frozenset[int]]) -> list[list[Entry]]:
    clusters: list[tuple[set[int], list[Entry]]] = []
    for entry in tops:
        touching = [cluster for cluster in clusters if cluster[0] & pipes[entry.pid]]
        merged = (set(pipes[entry.pid]).union(*(inodes for inodes, _ in touching)), [entry])
        for cluster in touching:
            merged[1].extend(cluster[1])
            clusters.remove(cluster)
        clusters.append(merged)
    return [entries for _, entries in clusters]


def _are_one(
    clusters: list[list[Entry]], pipes: dict[int, frozenset[int]], inherited: dict[int, frozenset[int]]
) -> bool:
    living = [e for cluster in clusters for e in cluster if e.state not in "ZX"]  # a zombie's title is cut short
    titles = Counter(e.title for e in living if e.sighting.is_titled)
    # Where the tracker's pipe was made above, what else a child holds is its own line to its parent: it divides nobody.
    is_of_one_driver = bool(living) and bool(frozenset.intersection(*(inherited[e.pid] for e in living)))
    divides = (len(c) > 1 if is_of_one_driver else any(pipes[e.pid] for e in c) for c in clusters)
    return sum(divides) <= 1 and all(count == 1 for count in titles.values())
