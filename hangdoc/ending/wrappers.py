"""What a wrapper does once its program has ended: nothing more, the same again, or something else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hangdoc.ending.muster import Muster
from hangdoc.ending.roll import read_forest
from hangdoc.launch.complaints import shown
from hangdoc.model.process import ProcessKey


@dataclass(frozen=True)
class Wrapped:
    """again: it started the launch's program once more; other: what else it runs now, "" for nothing.

    unsettled: it has a child that is still a copy of itself, about to become another program.
    """

    again: bool = False
    other: str = ""
    unsettled: bool = False


def look_below(proc: Path, muster: Muster) -> dict[ProcessKey, Wrapped]:
    """Look at the children of every wrapper.

    Rule: companions and further wrappers are nothing of their own. A program with the command line of a member is the
    launch again; any other program is something else, and so is being pid 1, which no signal ends from inside.
    """
    forest = read_forest(proc)
    commands = {one.entry.argv for one in muster.members.values() if one.fate == "program" and one.entry.argv}
    found: dict[ProcessKey, Wrapped] = {}
    for member in muster.living("wrapper"):
        if member.key.pid == 1:
            found[member.key] = Wrapped(other="be pid 1 of this namespace, which ends when it wants")
            continue
        children = forest.children.get(member.key.pid, [])
        programs = [one for one in children if one.kind not in {"companion", "wrapper"} and one.state not in "ZX"]
        programs = [one for one in programs if one.key not in muster.members]
        copies = [one for one in children if one.argv == member.entry.argv and one.key not in muster.members]
        other = next((one for one in programs if one.argv not in commands), None)
        if other is not None:
            found[member.key] = Wrapped(other=f"run {shown(other.title)} (pid {other.pid})")
        else:
            found[member.key] = Wrapped(again=bool(programs), unsettled=bool(copies))
    return found
