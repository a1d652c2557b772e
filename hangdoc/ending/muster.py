"""Hold every member by descriptor, and find those that appear while the launch is being ended."""

from __future__ import annotations

from collections.abc import Iterable, Set
from pathlib import Path

from hangdoc.ending.kinship import Traits, close_over, kin, user_of
from hangdoc.ending.records import LookAlike, Member, Roll
from hangdoc.ending.roll import read_forest
from hangdoc.launch.complaints import shown
from hangdoc.launch.forest import Forest
from hangdoc.launch.pidfd import Handle, hold
from hangdoc.launch.roles import Setting, describe
from hangdoc.launch.table import Entry, is_same, listed_pids, read_entry
from hangdoc.model.process import ProcessKey


class Muster:
    """The members of a launch while it ends: a context manager that holds each of them.

    missed: how many the last look found that had ended before they could be held; joined: all that were found later.

    Whoever was there at the plan and was no member then is never one later. A process that appears afterwards is one
    when it is the child of a member, when nothing but descent explains it (kinship.py), or when it lost its parent and
    is in a process group or session that a member leads: the leader's pid is then free or still the member's own.
    """

    def __init__(self, roll: Roll, traits: Traits, forest: Forest) -> None:
        self.members: dict[ProcessKey, Member] = {}
        self.handles: dict[ProcessKey, Handle] = {}
        self.joined: list[Member] = []
        self._proc: Path = forest.proc
        self._traits = traits
        self._seen = frozenset(forest.table)
        self._judged = {entry.key for entry in forest.table.values()}
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

    def confirm(self, members: Set[ProcessKey]) -> None:
        """Let go of who is no member at a second look; who has ended since stays known as one, but leads no group."""
        for key in self.members.keys() - members:
            self._groups.pop(key.pid, None)
            if not self.handles[key].has_ended:
                self.handles.pop(key).close()
                del self.members[key]

    def refresh(self) -> list[Member]:
        """Find new members, hold them and return them."""
        forest = read_forest(self._proc, self._seen)
        self._seen = frozenset(forest.table)
        strangers = [
            one for one in forest.table.values() if one.key not in self._judged and one.pid not in forest.never
        ]
        parents = {key.pid: key for key, one in self.members.items() if one.fate == "program"}
        reasons = close_over(strangers, forest.table, parents, lambda one: self._weigh(one, forest))
        found = [one for pid, because in reasons.items() if (one := self._admit(forest.table[pid], because))]
        gone = [one for one in strangers if one.pid not in reasons and self._was_like_us(one, forest)]
        self._judged.update(one.key for one in gone)
        self.missed = len(reasons) - len(found) + len(gone)
        self._last = forest
        return found

    def catch(self) -> list[Member]:
        """Look only at who is new since the last look, and weigh and hold each at once."""
        found: list[Member] = []
        new = set(listed_pids(self._proc)) - self._seen
        self._seen |= new  # the dead among them need not be read again
        for pid in sorted(new, reverse=True):
            entry = read_entry(self._proc, pid)
            if entry is None or entry.key in self._judged:
                continue
            alone = Forest({**self._last.table, pid: entry}, self._proc, self._last.never)
            if (because := self._weigh(entry, alone)) and (member := self._admit(entry, because)):
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

        Weaker ties than a member's: a group or session that was the members' alone, a pipe or log in common, the
        command line of a member. They are reported and never ended.
        """
        forest = read_forest(self._proc, self._seen)
        members = self.members.values()
        commands = {one.entry.argv: one.key.pid for one in members if one.entry.argv}
        numbers = {number for one in members for number in (one.entry.group, one.entry.session)} - self._elsewhere
        found: dict[ProcessKey, LookAlike] = {}
        for entry in forest.table.values():
            if entry.key in self._judged or entry.pid in forest.never or not self._is_adopted(entry, forest):
                continue
            told = kin(entry, self._traits, forest, {}, {})
            because = told.because or told.doubt
            if not because and (entry.group in numbers or entry.session in numbers):
                because = "is in a process group or session that only members were in"
            if not because and entry.argv in commands:
                because = f"has the command line of member {commands[entry.argv]}"
            if because:
                found[entry.key] = LookAlike(entry.key, shown(entry.title), f"came meanwhile and {because}")
        return found

    def _is_adopted(self, entry: Entry, forest: Forest) -> bool:
        if entry.kind not in {"program", "companion", "wrapper"} or entry.state in "ZX" or not self._is_new(entry):
            return False
        return forest.parent(entry) is None and user_of(self._proc, entry.pid) in self._traits.users

    def is_ours(self, entry: Entry) -> bool:
        """Say whether a process is a member, or so new that nobody has judged it and in a group that a member leads.

        Into such a group only a descendant of its session comes, as the child of somebody in it.
        """
        if entry.key in self.members:
            return True
        is_child = any(entry.ppid == key.pid for key in self.members)
        return entry.key not in self._judged and (is_child or entry.group in self._groups)

    def led_groups(self) -> dict[int, ProcessKey]:
        """Return the process groups that members lead or led, by number."""
        return dict(self._groups)

    def _admit(self, entry: Entry, because: str) -> Member | None:
        process = describe(entry, because, self._setting)
        member = Member(process, entry, "program", (f"{because}, started meanwhile",))
        self._judged.add(entry.key)
        if not self._take(member):
            return None
        again = read_entry(self._proc, entry.pid)
        if again is not None and (again.group, again.session) != (entry.group, entry.session):
            # Its pid changed hands within one clock tick, or it moved: the next look weighs it anew.
            self._judged.discard(entry.key)
            self.confirm(self.members.keys() - {member.key})
            return None
        self.joined.append(member)
        return member

    def _was_like_us(self, entry: Entry, forest: Forest) -> bool:
        """Say whether a process that has ended since it was listed may have been of the launch: nobody can tell now."""
        is_alike = bool(entry.argv) and entry.argv in {one.entry.argv for one in self.members.values()}
        is_engines = entry.sighting.is_titled and entry.sighting.engine == self._setting.engine
        if not (is_alike or is_engines) or forest.parent(entry) is not None:
            return False
        return entry.state in "ZX" or not is_same(self._proc, entry.key)

    def _take(self, member: Member) -> bool:
        handle = hold(member.key, self._proc)
        if handle is None:
            return False
        self.members[member.key] = member
        self.handles[member.key] = handle
        if member.fate == "program":
            self._lead(member.entry)
        return True

    def _lead(self, entry: Entry) -> None:
        if entry.pid in {entry.group, entry.session}:
            self._groups[entry.pid] = entry.key

    def _weigh(self, entry: Entry, forest: Forest) -> str:
        because = kin(entry, self._traits, forest, {}, {}).because
        if because or forest.parent(entry) is not None or entry.kind not in {"program", "companion", "wrapper"}:
            return because
        for number, what in ((entry.group, "process group"), (entry.session, "session")):
            leader = self._groups.get(number)
            now = forest.table.get(number)
            if leader is not None and (now is None or now.key == leader) and self._is_new(entry):
                return f"{what} of {number}"
        return ""

    def _is_new(self, entry: Entry) -> bool:
        return entry.key.start_ticks >= self._traits.root.start_ticks and is_same(self._proc, entry.key)


def _order(member: Member) -> tuple[int, ProcessKey]:
    rank = {"scheduler": 0, "worker": 0, "launcher": 2}.get(member.process.role, 1)
    return rank, member.key
