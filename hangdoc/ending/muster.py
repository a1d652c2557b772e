"""Hold every member by descriptor, and find those that appear while the launch is being ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from hangdoc.ending.descriptors import lives
from hangdoc.ending.kinship import Traits, close_over, kin, user_of
from hangdoc.ending.records import LookAlike, Member, Roll
from hangdoc.ending.roll import read_forest
from hangdoc.launch.age import is_older
from hangdoc.launch.complaints import shown
from hangdoc.launch.forest import Forest
from hangdoc.launch.pidfd import Handle, hold
from hangdoc.launch.roles import Setting, describe
from hangdoc.launch.table import Entry, is_same, listed_pids, read_entry, read_stat
from hangdoc.model.process import ProcessKey

GROUP_MEANWHILE = "is in the control group of the launch, but may be another start of it"


@dataclass(frozen=True)
class _Held:
    """A stranger: its handle, and what was read of it since."""

    handle: Handle
    entry: Entry


class Muster:
    """The members of a launch while it ends: a context manager that holds each of them.

    missed: how many the last look found that had ended before they could be held; joined: all that were found later.

    Whoever was there at the plan and was no member then is never one later. A process that appears afterwards is one
    when it is the child of a member, when nothing but descent explains it (kinship.py), or when it lost its parent and
    is in a process group or session that a member leads.

    A stranger is held first, then read and weighed, and is still there after that. A member vouches for others (as
    parent, as leader) only while it is there: afterwards its pid, and even its start time, may be somebody else's.
    """

    def __init__(self, roll: Roll, traits: Traits, forest: Forest) -> None:
        self.members: dict[ProcessKey, Member] = {}
        self.handles: dict[ProcessKey, Handle] = {}
        self.joined: list[Member] = []
        self._proc: Path = forest.proc
        # Who comes into the group now may be what a service manager starts again, seen before it is the program.
        self._traits = replace(traits, cgroup_doubt=traits.cgroup_doubt or GROUP_MEANWHILE, is_alone=False)
        self._seen = frozenset(forest.table)
        self._judged = {entry.key for entry in forest.table.values()}
        self._untied: set[ProcessKey] = set()
        self._setting = Setting(None, roll.launch.engine, roll.launch.settings, forest.proc)
        self._groups: dict[int, ProcessKey] = {}
        self.gone_before: list[Member] = []
        self.missed = 0
        self._last = forest
        inside = {member.key for member in roll.members}
        self._elsewhere = frozenset(
            number for one in forest.table.values() if one.key not in inside for number in (one.group, one.session)
        )
        for member in roll.members:
            if not self._take(member):
                self.gone_before.append(member)

    def __enter__(self) -> Muster:
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self.handles.values():
            handle.close()

    def living(self, fate: str | None = None) -> list[Member]:
        """Return the members that have not ended, ranks first and the launcher last."""
        found = [one for key, one in self.members.items() if not self.handles[key].has_ended]
        return sorted((one for one in found if fate in {None, one.fate}), key=_order)

    def handles_of(self, members: Iterable[Member]) -> list[Handle]:
        """Return their handles."""
        return [self.handles[one.key] for one in members]

    def confirm(self, members: Iterable[Member]) -> None:
        """Let go of who is no member at a second look; who has ended since stays known as one, but leads no group.

        What the second look says of the others replaces the first: it was read while they were held.
        """
        again = {one.key: one for one in members}
        for key in list(self.members):
            self._groups.pop(key.pid, None)
            if self.handles[key].has_ended:
                continue
            del self.members[key]
            handle = self.handles.pop(key)
            if key in again:
                self._keep(again[key], handle)
            else:
                handle.close()

    def refresh(self) -> list[Member]:
        """Find new members, hold them and return them."""
        forest = read_forest(self._proc, self._seen)
        self._seen = frozenset(forest.table)
        strangers = [
            one for one in forest.table.values() if one.key not in self._judged and one.pid not in forest.never
        ]
        with self._holding(strangers) as held:
            table = {**forest.table, **{pid: one.entry for pid, one in held.items()}}
            forest = Forest(table, self._proc, forest.never)
            parents = {key.pid: key for key in self._vouching()}
            reasons = close_over(
                [forest.table[one.pid] for one in strangers],
                forest.table,
                parents,
                lambda one: self._weigh(one, forest),
                lambda one: one.pid in held and held[one.pid].handle.is_there,
            )
            # Weighed as a whole, while it was there, and found to be somebody else's: its end is nothing to us.
            self._untied |= {one.entry.key for pid, one in held.items() if pid not in reasons and one.handle.is_there}
            found = [one for pid, because in reasons.items() if (one := self._admit(held.pop(pid, None), because))]
        gone = [one for one in strangers if one.pid not in reasons and self._was_like_us(one, forest)]
        self._judged.update(one.key for one in gone)
        self.missed = len(reasons) - len(found) + len(gone)
        self._last = forest
        return found

    def _vouching(self) -> list[ProcessKey]:
        """Return the members whose children belong: those that are there, for the pids of others may be reused."""
        return [key for key, one in self.members.items() if one.fate == "program" and self.handles[key].is_there]

    @contextmanager
    def _holding(self, strangers: Iterable[Entry]) -> Iterator[dict[int, _Held]]:
        """Yield strangers, each held and read again while held, by pid; on the way out those that are left go free."""
        held: dict[int, _Held] = {}
        try:
            for stranger in strangers:
                if one := self._hold(stranger):
                    held[stranger.pid] = one
            yield held
        finally:
            for one in held.values():
                one.handle.close()

    def _hold(self, stranger: Entry) -> _Held | None:
        handle = hold(stranger.key, self._proc)
        if handle is None:
            return None
        entry = read_entry(self._proc, stranger.pid)
        if entry is not None and entry.key == stranger.key:
            return _Held(handle, entry)
        handle.close()
        return None

    def catch(self) -> list[Member]:
        """Look only at who is new since the last look, and weigh and hold each at once."""
        found: list[Member] = []
        new = set(listed_pids(self._proc)) - self._seen
        self._seen |= new  # the dead among them need not be read again
        for pid in sorted(new, reverse=True):
            entry = read_entry(self._proc, pid)
            if entry is None or entry.key in self._judged:
                continue
            with self._holding([entry]) as held:
                if pid not in held:
                    continue
                alone = Forest({**self._last.table, pid: held[pid].entry}, self._proc, self._last.never)
                because = self._weigh(held[pid].entry, alone)
                if because and (member := self._admit(held.pop(pid), because)):
                    found.append(member)
        return found

    def adopt_children_of(self, wrapper: ProcessKey) -> None:
        """Count what a wrapper has started since the plan as the launch's: it has started the same program again."""
        member = self.members[wrapper]
        self.members[wrapper] = Member(member.process, member.entry, "program", member.because)
        self._lead(member.entry)
        self.refresh()

    def newcomers(self) -> dict[ProcessKey, LookAlike]:
        """Return who has come since the plan and has no parent, and may be of the launch though nothing proves it.

        Weaker ties than a member's: a group or session that was the members' alone, a pipe or log in common. They are
        reported and never ended. A member's command line alone is none: another user of the machine, another test
        suite may start the same at any time; who starts this launch again is looked for by his parent (proof.py).
        """
        members = self.members.values()
        numbers = {number for one in members for number in (one.entry.group, one.entry.session)} - self._elsewhere
        found: dict[ProcessKey, LookAlike] = {}
        for entry, forest in self._recent():
            if entry.key in self._judged or entry.pid in forest.never or not self._is_adopted(entry, forest):
                continue
            told = kin(entry, self._traits, forest, {}, {})
            because = told.because or told.doubt
            if not because and (entry.group in numbers or entry.session in numbers):
                because = "is in a process group or session that only members were in"
            if because:
                found[entry.key] = LookAlike(entry.key, shown(entry.title), f"came meanwhile and {because}")
        return found

    def _recent(self) -> Iterator[tuple[Entry, Forest]]:
        """Yield who came since the last whole look, each at once, for he may live for milliseconds; then who it saw."""
        for pid in sorted(set(listed_pids(self._proc)) - self._seen, reverse=True):
            entry = read_entry(self._proc, pid)
            if entry is None:
                continue
            above = read_entry(self._proc, entry.ppid)
            table = {**self._last.table, **{one.pid: one for one in (above, entry) if one is not None}}
            yield entry, Forest(table, self._proc, self._last.never)
        yield from ((entry, self._last) for entry in self._last.table.values())

    def _is_adopted(self, entry: Entry, forest: Forest) -> bool:
        if entry.kind not in {"program", "companion", "wrapper"} or entry.state in "ZX" or not self._is_new(entry):
            return False
        return forest.parent(entry) is None and user_of(self._proc, entry.pid) in self._traits.users

    def is_ours(self, entry: Entry) -> bool:
        """Say whether a process is a member, or so new that nobody has judged it and in a group that a member leads.

        Into such a group only a descendant of its session comes, as the child of somebody in it.
        """
        if entry.key in self.members:
            return self.handles[entry.key].is_there
        is_child = entry.ppid in {key.pid for key in self._vouching()}
        return entry.key not in self._judged and (is_child or self._is_led(entry.group, in_session=False))

    def led_groups(self) -> dict[int, ProcessKey]:
        """Return the process groups that members lead or led, by number."""
        return dict(self._groups)

    def _admit(self, held: _Held | None, because: str) -> Member | None:
        """Make a member of who was held while it was weighed; None when it has ended since, or could not be held."""
        if held is None:
            return None
        entry, handle = held.entry, held.handle
        self._judged.add(entry.key)
        if handle.has_ended:
            handle.close()
            return None
        process = describe(entry, because, self._setting)
        member = Member(process, entry, "program", (f"{because}, started meanwhile",))
        self._keep(member, handle)
        self.joined.append(member)
        return member

    def _was_like_us(self, entry: Entry, forest: Forest) -> bool:
        """Say whether a process that has ended since it was listed may have been of the launch: nobody can tell now."""
        is_alike = bool(entry.argv) and entry.argv in {one.entry.argv for one in self.members.values()}
        is_engines = entry.sighting.is_titled and entry.sighting.engine == self._setting.engine
        if entry.key in self._untied or not (is_alike or is_engines) or forest.parent(entry) is not None:
            return False
        return not lives(self._proc, entry.key)  # a zombie that its adopter buries late has ended, too

    def _take(self, member: Member) -> bool:
        handle = hold(member.key, self._proc)
        if handle is not None:
            self._keep(member, handle)
        return handle is not None

    def _keep(self, member: Member, handle: Handle) -> None:
        self.members[member.key] = member
        self.handles[member.key] = handle
        if member.fate == "program":
            self._lead(member.entry)

    def _lead(self, entry: Entry) -> None:
        if entry.pid in {entry.group, entry.session}:
            self._groups[entry.pid] = entry.key

    def _weigh(self, entry: Entry, forest: Forest) -> str:
        because = kin(entry, self._traits, forest, {}, {}).because
        if because or forest.parent(entry) is not None or entry.kind not in {"program", "companion", "wrapper"}:
            return because
        for number, what in ((entry.group, "process group"), (entry.session, "session")):
            if self._is_new(entry) and self._is_led(number, in_session=what == "session"):
                return f"{what} of {number}"
        return ""

    def _is_led(self, number: int, *, in_session: bool) -> bool:
        """Say whether a process group or session is the one that a member leads or led, and no later one of its number.

        A number is not given away as long as its leader is there, or anybody is in the group or session.
        """
        leader = self._groups.get(number)
        if leader is None:
            return False
        if self.handles[leader].is_there or (not in_session and self.handles[leader].leads_somebody):
            return True
        return any(_session(self._proc, key) == number and self.handles[key].is_there for key in self.members)

    def _is_new(self, entry: Entry) -> bool:
        return not is_older(entry.key, self._traits.root) and is_same(self._proc, entry.key)


def _session(proc: Path, key: ProcessKey) -> int | None:
    try:
        line = read_stat(proc, key.pid)
    except PermissionError:
        return None
    return line.session if line is not None else None


def _order(member: Member) -> tuple[int, ProcessKey]:
    rank = {"scheduler": 0, "worker": 0, "launcher": 2}.get(member.process.role, 1)
    return rank, member.key
