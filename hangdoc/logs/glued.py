"""Says which of several launches in one file was read, and how to cut a file into which several logs were glued."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

MOST_PARTS = 8
"""Parts for which commands are told. Arbitrary: more are cut by a loop."""

_DATED = len("2026-01-02 03:04:05")
"""A clock without a date goes back at midnight."""


@dataclass(frozen=True)
class Begin:
    """Where a launch begins in a file.

    node: its rank of several nodes, -1 for none; stamp: of its first line; before: the newest time above it.
    """

    offset: int
    node: int
    stamp: str
    before: str


def are_glued(begins: Sequence[Begin]) -> bool:
    """Tell whether logs of several nodes or servers stand one after the other, not launches that followed each other.

    Rule: a launch that begins before the one above it ended, or several different nodes of which each begins once.
    Fails where the nodes of two launches were written to one file in turns: their times tell.
    """
    nodes = [begin.node for begin in begins]
    if len(begins) > 1 and -1 not in nodes and len(set(nodes)) == len(nodes):
        return True
    return any(len(two.stamp) == len(two.before) == _DATED and two.stamp < two.before for two in begins[1:])


def told(path: str, count: int, begins: Sequence[Begin], lines: Sequence[int]) -> str:
    """Return one sentence on the launches of a file, with commands.

    begins: of the first ones and of the last one; lines: the numbers of the lines they begin at, 0 where not counted.

    >>> told("a.log", 2, (Begin(0, 0, "10:00:00", ""), Begin(90, 1, "10:00:01", "10:00:30")), (1, 3)).split(". ")[1]
    "Cut it: sed -n '1,2p' a.log > node0.log; sed -n '3,$p' a.log > node1.log; hangdoc diagnose node0.log node1.log"
    """
    if not are_glued(begins):
        least = f", from line {lines[-1]} on" if lines[-1] else ""
        return f"{path} holds {count} launches, and the last one was read{least}: --launch N reads another"
    what = f"{path} holds {count} logs one below the other, and only the last one was read"
    if count > MOST_PARTS or not all(lines):
        return f"{what}: cut it where server_args= stands, and give all parts"
    names = [f"node{one.node}.log" if one.node >= 0 else f"part{at}.log" for at, one in enumerate(begins)]
    if len(set(names)) < len(names):
        names = [f"part{at}.log" for at in range(len(begins))]
    ends = [f"{line - 1}p" for line in lines[1:]] + ["$p"]
    starts = [1, *lines[1:]]
    quoted = shlex.quote(path)
    cuts = [f"sed -n '{start},{end}' {quoted} > {name}" for start, end, name in zip(starts, ends, names, strict=True)]
    return f"{what}. Cut it: {'; '.join(cuts)}; hangdoc diagnose {' '.join(names)}"
