"""Prepare an ending: whose launch, who belongs, what it has; and refuse before any signal what must not be done."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from hangdoc.ending.descriptors import holders
from hangdoc.ending.inventory import leftovers, take_stock
from hangdoc.ending.kinship import Traits, user_of
from hangdoc.ending.memory import Reader, reader
from hangdoc.ending.muster import Muster
from hangdoc.ending.namespaces import host_command
from hangdoc.ending.records import Before, Member, Roll, Thing
from hangdoc.ending.roll import call_roll, read_forest
from hangdoc.errors import ExitCode, HangdocError
from hangdoc.launch import complaints
from hangdoc.launch.age import is_older
from hangdoc.launch.find import PROC, find_launch
from hangdoc.launch.forest import Forest
from hangdoc.launch.pidfd import Handle, anchor, may_signal, pin
from hangdoc.launch.table import read_table
from hangdoc.model.process import ProcessKey

NEVER_ENDED = {"host", "shell", "manager"}
"""Kinds that run programs of their own user, which have nothing to do with a launch."""


@dataclass(frozen=True)
class Plan:
    """One launch that is to be ended, every member of it held."""

    roll: Roll
    traits: Traits
    muster: Muster
    before: Before
    read_gpus: Reader

    @property
    def members(self) -> tuple[Member, ...]:
        """Who is to be ended: held, and confirmed while held."""
        return tuple(sorted(self.muster.members.values(), key=lambda one: one.key))


def targets(pid: int | None, port: int | None, proc: Path = PROC) -> tuple[ProcessKey, ...]:
    """Return the roots that are meant: one launch by pid or port, without either every orphaned one of the user."""
    if pid is not None or port is not None:
        launch = find_launch(pid, port, proc)
        if pid is None:
            return (launch.root,)
        forest = read_forest(proc)
        if (dead := dead_launcher(forest, pid)) is not None:
            return (dead,)
        return (launch.root,) if launch.engine != "generic" else (same_program(forest, pid, launch.root),)
    return orphans(read_forest(proc), calling_users())


def same_program(forest: Forest, pid: int, root: ProcessKey) -> ProcessKey:
    """Return how far up a program of no known engine goes: its own forks and Python's children, no further.

    What started it (mpirun, somebody's harness) may count as the root of the launch; but it has other duties than this
    program, and is never ended for it unless it is named itself.
    """
    entry = forest.table.get(pid)
    while entry is not None and entry.key != root:
        parent = forest.parent(entry)
        if parent is None or not (entry.sighting.is_kin or entry.argv == parent.argv):
            return entry.key
        entry = parent
    return root


def dead_launcher(forest: Forest, pid: int) -> ProcessKey | None:
    """Return the launcher that a process lost, when it is dead and not waited for, and led the process's group.

    Its survivors may be launches of their own by what they show (forks that keep the launcher's command line); but the
    number of the group is the zombie's as long as nobody buries it. Only of a program: a dead shell's group is a job of
    anything, and what a test runner or a notebook leaves is no one launch.
    """
    entry = forest.table.get(pid)
    if entry is None or entry.pid == entry.group or forest.parent(entry) is not None:
        return None
    leader = forest.table.get(entry.group)
    if leader is None or leader.state not in "ZX" or leader.kind != "program" or leader.pid in forest.never:
        return None
    return leader.key if is_older(leader.key, entry.key) else None


def orphans(forest: Forest, users: frozenset[int]) -> tuple[ProcessKey, ...]:
    """Return the roots of engine processes of these users whose launcher is gone."""
    homes = (forest.home(entry) for entry in forest.table.values() if entry.sighting.is_titled)
    roots = {home.root for home in homes if home is not None and not forest.has_launcher(home.root)}
    roots = {root for root in roots if forest.host(forest.table[root]) is None}  # a living notebook's are no orphans
    roots = {root for root in roots if any(forest.table[pid].state not in "ZX" for pid in forest.members(root))}
    mine = (forest.table[root] for root in roots if user_of(forest.proc, root) in users)
    return tuple(sorted(entry.key for entry in mine))


def calling_users() -> frozenset[int]:
    """Return the calling user, and under sudo who called it."""
    caller = os.environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    return frozenset({os.geteuid(), *([int(caller)] if caller.isdigit() else [])})


def stray_files(users: Iterable[int], proc: Path = PROC) -> list[Thing]:
    """Return what has an engine's name in /dev/shm, belongs to these users, and nobody visible has open or mapped."""
    found = [thing for user in sorted(users) for thing in leftovers(user)]
    living = [entry.key for entry in read_table(proc).values() if entry.kind != "kernel"] if found else []
    held, _ = holders(proc, living, {one.identity for one in found})
    return [one for one in found if one.identity not in held]


@contextmanager
def prepared(
    find: Callable[[], Sequence[ProcessKey]], include: Sequence[int], named: Iterable[int] = (), proc: Path = PROC
) -> Iterator[list[Plan]]:
    """Yield a plan for each launch; every member is held until the way out. HangdocError when one must be refused.

    find: returns the roots that are meant; named: pids by which the user means them.

    Rule: who was named is held before anything is read, a root before it is found for the second time, a member before
    the roll is called for the second time; and the first two are still there when all has been read. It works because
    a pid cannot change hands as long as its owner is there, so that each reading that decides is of a process that is
    held. Pid and start time do not suffice: where pids start over, a successor can have both.
    """
    with ExitStack() as stack:
        fixed = [one for pid in (*named, *include) if (one := pin(pid)) is not None]
        roots = find()
        fixed += [_anchored(root, proc) for root in roots]
        for one in fixed:
            stack.callback(one.close)
        if roots and not set(roots) <= set(find()):
            raise HangdocError("the launch changed while it was looked at", "try again", ExitCode.UNOBSERVABLE)
        plans = [_prepare(root, include, proc, stack) for root in roots]
        for one in fixed:
            if not one.is_there:
                raise _ended(one.key.pid)
        yield plans


def _anchored(root: ProcessKey, proc: Path) -> Handle:
    handle = anchor(root, proc)
    if handle is None:
        raise _ended(root.pid)
    return handle


def _ended(pid: int) -> HangdocError:
    return HangdocError(f"the launch of pid {pid} has ended meanwhile", "", ExitCode.UNOBSERVABLE)


def _prepare(root: ProcessKey, include: Sequence[int], proc: Path, stack: ExitStack) -> Plan:
    forest = read_forest(proc)
    _refuse_root(forest, root)
    roll, traits = call_roll(forest, root, include)
    muster = stack.enter_context(Muster(roll, traits, forest))
    # Once more, now that nobody's pid can change hands: what was read is then of the processes that are held.
    again, traits = call_roll(read_forest(proc), root, include)
    muster.confirm(again.members)
    _refuse_the_dead(muster, again, root)
    _refuse_members(muster, proc)
    pids = frozenset(key.pid for key in muster.members)
    read = stack.enter_context(reader(roll.launch, proc, pids))
    before = take_stock(proc, roll.launch, muster.members.values(), read())
    return Plan(again, traits, muster, before, read)


def stock_taken_again(plan: Plan, proc: Path = PROC) -> Plan:
    """Return the plan with what the launch has now: the user may have taken his time before he agreed."""
    gpus = plan.before.gpus if plan.before.gpus.unread else plan.read_gpus()
    members = plan.muster.living()
    now = take_stock(proc, plan.roll.launch, members, gpus) if members else plan.before
    return replace(plan, before=now)


def _refuse_root(forest: Forest, root: ProcessKey) -> None:
    entry = forest.table.get(root.pid)
    if entry is None or entry.key != root:
        raise _ended(root.pid)
    if root.pid == 1:
        raise HangdocError(
            f"the launch's root ({complaints.shown(entry.title)}) is pid 1 of this container: "
            "no signal from inside ends it, so nothing was touched",
            f"end it from its host: {host_command()}",
        )
    if entry.kind in NEVER_ENDED:
        raise HangdocError(
            f"{root.pid} ({complaints.shown(entry.title)}) runs other programs than a launch, too",
            "give the pid of a process of the launch",
        )


def _refuse_the_dead(muster: Muster, roll: Roll, root: ProcessKey) -> None:
    """Raise when nobody lives: a zombie is its parent's to bury, and there is nothing to end or to prove."""
    if not muster.members and all(one.entry.state in "ZX" for one in roll.members):
        raise HangdocError(
            f"{root.pid} is dead already, its parent has not waited for it, and it left nobody: nothing to end",
            "it goes when its parent waits for it or ends",
            ExitCode.UNOBSERVABLE,
        )


def _refuse_members(muster: Muster, proc: Path) -> None:
    """Raise when a member is somebody else's: then nothing is touched, not even what could be."""
    for member in muster.living("program"):
        owner = user_of(proc, member.key.pid)
        is_mine = os.geteuid() == 0 or owner in {None, os.geteuid()}
        if not is_mine or not may_signal(muster.handles[member.key]):
            raise HangdocError(
                f"process {member.key.pid} ({complaints.shown(member.process.title)}) belongs to another user "
                f"(uid {owner}): nothing was touched",
                "run it as that user, or with sudo",
                ExitCode.UNOBSERVABLE,
            )
