"""What a wrapper does once its program has ended: nothing more, the same again, or something else."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

from hangdoc.ending.muster import Muster
from hangdoc.ending.roll import read_forest
from hangdoc.ending.scripts import may_repeat
from hangdoc.launch.complaints import shown
from hangdoc.launch.table import Entry
from hangdoc.model.process import ProcessKey


@dataclass(frozen=True)
class Wrapped:
    """again: it started the launch's program once more; other: what else it runs now, "" for nothing.

    unsettled: it has a child that is still a copy of itself, about to become another program, or runs a tool.
    tool: a small tool that it runs since its program has ended; it may be over at once (date), or be what the script is
    there for now (sleep). repeats: its script has a loop, so that the launch may come back; None: it cannot be read.
    """

    again: bool = False
    other: str = ""
    unsettled: bool = False
    tool: str = ""
    repeats: bool | None = False


def look_below(proc: Path, muster: Muster, left: Set[ProcessKey]) -> dict[ProcessKey, Wrapped]:
    """Look at the children of every wrapper. left: wrappers that go on; so does then what waits for them.

    Rule: companions that were there at the plan and further wrappers are nothing of their own. A program with the
    command line of a member is the launch again; any other program is something else, and so is being pid 1, which no
    signal ends from inside.
    """
    forest = read_forest(proc)
    commands = {one.entry.argv for one in muster.members.values() if one.fate == "program" and one.entry.argv}
    found: dict[ProcessKey, Wrapped] = {}
    for member in muster.living("wrapper"):
        if member.key.pid == 1:
            found[member.key] = Wrapped(other="be pid 1 of this namespace, which ends when it wants")
            continue
        now = forest.table.get(member.key.pid)
        if now is not None and now.argv and now.kind != "wrapper" and now.argv != member.entry.argv:
            # bash -c runs its last command in its own place.
            found[member.key] = Wrapped(again=now.argv in commands, other=f"be {shown(now.title)} (pid {now.pid})")
            continue
        children = forest.children.get(member.key.pid, [])
        fresh = [one for one in children if one.key not in muster.members and one.state not in "ZX"]
        programs = [one for one in fresh if one.kind not in {"companion", "wrapper"}]
        copies = [one for one in fresh if one.argv == member.entry.argv]
        other = [one for one in children if one.key in left] + [one for one in programs if one.argv not in commands]
        tool = _runs([one for one in fresh if one.kind == "companion"])
        again = bool(programs) and not other
        repeats = may_repeat(proc, now) if now is not None else False
        found[member.key] = Wrapped(again, _runs(other), bool(copies or tool) and not programs, tool, repeats)
    return found


def _runs(entries: list[Entry]) -> str:
    return f"run {shown(entries[0].title)} (pid {entries[0].pid})" if entries else ""
