"""Call the roll of a launch: every member with the reason why, every look-alike with the reason why not."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from hangdoc.ending.descriptors import read_open
from hangdoc.ending.exclusive import doubted, without_shared
from hangdoc.ending.included import included, refuse_other_launches
from hangdoc.ending.kinship import Kin, Traits, close_over, kin_or_sibling, read_traits
from hangdoc.ending.lookalikes import look_alikes
from hangdoc.ending.peers import unix_peers
from hangdoc.ending.records import Member, Roll
from hangdoc.ending.supervision import supervisors
from hangdoc.errors import ExitCode, HangdocError
from hangdoc.launch.age import by_age, is_older
from hangdoc.launch.compose import compose
from hangdoc.launch.find import own_and_callers
from hangdoc.launch.forest import Forest
from hangdoc.launch.marker import VARIABLE, read_marker
from hangdoc.launch.roles import Setting, describe
from hangdoc.launch.table import Entry, Table, children_of, listed_pids, read_table
from hangdoc.launch.wrapping import wrappers
from hangdoc.model.process import Launch, Process, ProcessKey


def own(table: Table, proc: Path) -> frozenset[int]:
    """Return hangdoc, who called it and what it started: never members, whatever they have in common with a launch.

    A launch that hangdoc started for its user is not its own: it leads a session and carries a marker of its own.
    """
    below = {os.getpid()}
    children = children_of(table)
    waiting = [os.getpid()]
    while waiting:
        started = [child for child in children.get(waiting.pop(), ()) if child.pid not in below]
        found = [child.pid for child in started if not _is_a_launch(child, proc)]
        below.update(found)
        waiting += found
    return frozenset(own_and_callers(table, os.getpid()) | below)


def _is_a_launch(child: Entry, proc: Path) -> bool:
    marker = read_marker(proc, child.key) if child.pid == child.session else ""
    return marker not in {"", os.environ.get(VARIABLE, "")}


def read_forest(proc: Path, known: frozenset[int] = frozenset()) -> Forest:
    """Read all processes and divide them into launches; hangdoc's own are in none.

    known: pids that can wait: whoever is new is read first, for he may hand over to a child and end within a
    millisecond.
    """
    table = read_table(proc, sorted(listed_pids(proc), key=lambda pid: (pid in known, -pid)))
    return Forest(table, proc, own(table, proc))


def call_roll(forest: Forest, root: ProcessKey, include: Iterable[int] = ()) -> tuple[Roll, Traits]:
    """Return the launch of a root with all its members, and the traits by which later ones are known.

    include: pids that the user adds. HangdocError when the launch is gone or one of these can be no member.
    """
    top = forest.table.get(root.pid)
    if top is None or top.key != root:
        raise HangdocError(f"the launch of pid {root.pid} has ended meanwhile", "", ExitCode.UNOBSERVABLE)
    launch = compose(forest, root.pid)
    small = set(wrappers(forest, root.pid)) - set(forest.members(root.pid))
    members = [_member(forest.table[one.key.pid], one, small) for one in launch.processes if _is(forest, one)]
    known = {one.key.pid for one in members}
    outsiders = [entry for entry in forest.table.values() if entry.pid not in known]
    # Kin that lost its parent is not yet inside, but no outsider either: what it holds does not speak against it.
    settled = [one for one in outsiders if forest.parent(one) is not None or one.kind not in {"program", "companion"}]
    traits = read_traits(forest, top, (one.entry for one in members), settled)
    alone = _admit(forest, members, outsiders, _weigh(forest, without_shared(traits), members, outsiders))
    traits = doubted(traits, forest, known | set(alone))
    weighed = _weigh(forest, traits, members, outsiders)
    admitted = _admit(forest, members, outsiders, weighed)
    joined: dict[int, tuple[str, ...]] = {pid: (because,) for pid, because in admitted.items()}
    for pid in include:
        added = {one: because for one, because in included(forest, pid).items() if one not in known | set(joined)}
        refuse_other_launches(forest, root.pid, added)
        joined |= added
    setting = Setting(None, launch.engine, launch.settings, forest.proc)
    for pid, reasons in joined.items():
        entry = forest.table[pid]
        members.append(Member(describe(entry, reasons[0], setting), entry, "program", reasons))
    launch = _with(launch, members)
    doubts = {pid: one for pid, one in weighed.items() if one.doubt and pid not in joined}
    outermost = min((one.entry for one in members), key=lambda one: by_age(one.key))
    top_member = outermost if outermost.pid in small else top
    roll = Roll(launch, tuple(members), look_alikes(forest, launch, doubts), supervisors(forest, top_member))
    return roll, traits


def _admit(forest: Forest, members: list[Member], outsiders: list[Entry], weighed: dict[int, Kin]) -> dict[int, str]:
    """Return the reasons of those outsiders that belong, by pid."""
    dead = [one.entry for one in members if one.entry.state in "ZX" and one.fate == "program"]
    parents = {one.key.pid: one.key for one in members if one.entry in dead}
    why = partial(_left_by, dead=dead, forest=forest)
    return close_over(outsiders, forest.table, parents, lambda one: weighed[one.pid].because or why(one))


def _is(forest: Forest, process: Process) -> bool:
    entry = forest.table.get(process.key.pid)
    return entry is not None and entry.key == process.key


def _member(entry: Entry, process: Process, small: set[int]) -> Member:
    return Member(process, entry, "wrapper" if entry.pid in small else "program", (process.member_because,))


def _weigh(forest: Forest, traits: Traits, members: list[Member], outsiders: list[Entry]) -> dict[int, Kin]:
    peers = unix_peers()
    opened = {one.key.pid: read_open(forest.proc, one.key) for one in members}
    owned = {inode: pid for pid, files in opened.items() if files is not None for inode in files.sockets()}
    weigh = partial(kin_or_sibling, traits=traits, forest=forest, peers=peers, owned=owned)
    return {entry.pid: weigh(entry) for entry in outsiders}


def _left_by(entry: Entry, dead: list[Entry], forest: Forest) -> str:
    """Say by whom a process without a parent was left; "" unless a dead member that nobody waited for led it.

    A zombie keeps its pid, so the number of the group or session that it led cannot mean another one's; and into a
    session one only comes by descent.
    """
    if entry.pid in forest.never or entry.kind not in {"program", "companion", "wrapper"} or entry.state in "ZX":
        return ""
    if forest.parent(entry) is not None:
        return ""
    for leader in dead:
        for number, what in ((entry.group, "process group"), (entry.session, "session")):
            if number == leader.pid and is_older(leader.key, entry.key):
                return f"in the {what} that {number}, dead and not waited for, led"
    return ""


def _with(launch: Launch, members: list[Member]) -> Launch:
    processes = tuple(sorted((one.process for one in members), key=lambda one: one.key))
    return Launch(
        root=launch.root,
        engine=launch.engine,
        engine_version=launch.engine_version,
        settings=launch.settings,
        processes=processes,
    )
