"""Gather engine processes whose launcher is gone into launches, never two launches into one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from hangdoc.launch.age import by_age, is_older
from hangdoc.launch.table import Entry, pipe_ends

STANDARD_DESCRIPTORS = 3
"""Descriptors 0 to 2 tell nothing: two launches may write into one pipe."""


def gather(tops: list[Entry], settled: Sequence[tuple[Entry, int]], proc: Path) -> Iterator[tuple[int, int, str]]:
    """Divide orphans into launches; yields pid, root and the reason.

    settled: members of launches whose launcher lives, with its root.

    Rule: processes that hold ends of the same pipe (beyond standard input, output and error) are of one launch: all
    children of one launcher inherit the pipe to its resource_tracker. Orphans of one process group are of one launch
    too (one that leads a group of its own counts to its session's), unless two of them carry the same title (two
    schedulers of rank 0 are of two launches) or pipes divide them. The root is the
    oldest with a title.

    It works because Python opens its descriptors not to be inherited, multiprocessing's own excepted. It fails when the
    pipes may not be read and one process group holds the remains of two launches with no title in common: they come
    out as one. Remains of one launch in several process groups that share no pipe come out as several: never a guess.
    """
    pipes = {entry.pid: _private_pipes(proc, entry) for entry in tops}
    wanted = frozenset().union(*pipes.values())
    owners = _live_owners(settled, wanted, proc) if wanted else {}
    began = {entry.pid: entry.key for entry, root in settled if entry.pid == root}
    for cluster in _clusters(tops, pipes):
        roots = {owners[inode] for entry in cluster for inode in pipes[entry.pid] if inode in owners}
        # What is older than a launch was left behind by an earlier one, however much the two inherited together.
        roots = {root for root in roots if all(root not in began or is_older(began[root], e.key) for e in cluster)}
        oldest = min(cluster, key=lambda entry: (not entry.sighting.is_titled, by_age(entry.key))).pid
        root = roots.pop() if len(roots) == 1 else oldest
        yield from ((entry.pid, root, _reason(entry.pid, root, oldest)) for entry in cluster)


def _reason(pid: int, root: int, oldest: int) -> str:
    if root != oldest:
        return f"shares a pipe with the launch of {root}"
    return "oldest of a launch whose launcher is gone" if pid == root else f"left behind by the same launcher as {root}"


def _private_pipes(proc: Path, entry: Entry) -> frozenset[int]:
    ends = pipe_ends(proc, entry.key) or {}
    return frozenset(inode for number, inode in ends.items() if number >= STANDARD_DESCRIPTORS)


def _live_owners(settled: Sequence[tuple[Entry, int]], wanted: frozenset[int], proc: Path) -> dict[int, int]:
    """Map pipe to the live launch that holds it; a pipe that two launches hold tells nothing."""
    owners: dict[int, set[int]] = {}
    for entry, root in settled:
        for inode in _private_pipes(proc, entry) & wanted:
            owners.setdefault(inode, set()).add(root)
    return {inode: roots.pop() for inode, roots in owners.items() if len(roots) == 1}


def _clusters(tops: list[Entry], pipes: dict[int, frozenset[int]]) -> list[list[Entry]]:
    clusters = _by_pipe(tops, pipes)
    # Only a band with a process in the launcher's own group: a dead terminal's session holds jobs of every launch.
    for band in {entry.group for entry in tops}:
        inside = [cluster for cluster in clusters if all(_band(entry) == band for entry in cluster)]
        if len(inside) > 1 and _are_one(inside, pipes):
            clusters = [cluster for cluster in clusters if cluster not in inside]
            clusters.append([entry for cluster in inside for entry in cluster])
    return clusters


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


def _are_one(clusters: list[list[Entry]], pipes: dict[int, frozenset[int]]) -> bool:
    titles = Counter(e.title for cluster in clusters for e in cluster if e.sighting.is_titled)
    with_pipes = [cluster for cluster in clusters if any(pipes[entry.pid] for entry in cluster)]
    return len(with_pipes) <= 1 and all(count == 1 for count in titles.values())
