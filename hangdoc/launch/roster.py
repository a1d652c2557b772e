"""Keep the membership of a launch current while it is watched."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from hangdoc.launch.find import PROC, own_and_callers
from hangdoc.launch.forest import Forest, Home
from hangdoc.launch.roles import Setting, describe
from hangdoc.launch.table import Entry, Table, listed_pids, make_entry, read_argv, read_entry, read_stat
from hangdoc.model.process import Launch, Process
from hangdoc.procfs.stat import StatLine

ROUNDS_BEFORE_REREAD = 60
"""Each stranger is read again once in so many rounds, for a pid that was reused between two of them; arbitrary."""


GONE = frozenset("ZX")
"""States of a process that ended and was not waited for."""


class Roster:
    """The members of a launch, kept current by refresh(), once a second.

    Members are known by pid and start time: one that dies leaves, even when its pid is taken again at once. A zombie
    stays, it is evidence. A member that is re-parented stays, because it is one already. A new process joins by the
    rules of the forest. Strangers are read once; only members are read every time.
    """

    def __init__(self, launch: Launch, proc: Path = PROC) -> None:
        self._launch = launch
        self._proc = proc
        self._members: dict[int, Process] = {process.key.pid: process for process in launch.processes}
        launchers = [process.key for process in launch.processes if process.role == "launcher"]
        launcher = launchers[0] if launchers else None
        self._setting = Setting(launcher, launch.engine, launch.settings, proc)
        self._table: Table = {}
        self._rounds = 0

    def refresh(self) -> tuple[Process, ...]:
        """Return the present members, sorted by key."""
        listed = set(listed_pids(self._proc))
        self._rounds += 1
        due = {pid for pid in self._table if pid % ROUNDS_BEFORE_REREAD == self._rounds % ROUNDS_BEFORE_REREAD}
        for pid in (self._table.keys() - listed) | (due - self._members.keys()):
            del self._table[pid]
        for pid in list(self._members):
            self._follow(pid)
        unseen = [entry for pid in listed - self._table.keys() if (entry := read_entry(self._proc, pid)) is not None]
        self._table.update({entry.pid: entry for entry in unseen})
        self._admit(unseen)
        return tuple(sorted(self._members.values(), key=lambda process: process.key))

    def _follow(self, pid: int) -> None:
        """Read a member again; drop it when it is gone or somebody else has its pid."""
        known = self._members[pid]
        try:
            stat = read_stat(self._proc, pid)
        except PermissionError:
            stat = None
        if stat is None or stat.start_ticks != known.key.start_ticks:
            del self._members[pid]
            self._table.pop(pid, None)
            return
        seen = self._table.get(pid)
        entry = self._current(seen, stat) if seen is not None else read_entry(self._proc, pid)
        if entry is None or entry.key != known.key:
            return  # gone since its stat was read; the next round sees it
        self._table[pid] = entry
        if entry.state in GONE:
            # Its command line is empty now: what it was is still what it was.
            self._members[pid] = structs.replace(known, ppid=entry.ppid)
        elif entry is not seen:
            self._members[pid] = self._record(entry, known.member_because)

    def _current(self, seen: Entry, stat: StatLine) -> Entry:
        """Return the entry as it is now; the command line is read again only while it may still change."""
        if stat.state in GONE:
            return seen if seen.state in GONE and seen.ppid == stat.ppid else replace(seen, ppid=stat.ppid, state="Z")
        renamed = stat.name != seen.comm or _may_be_renamed(seen)
        if not renamed and stat.ppid == seen.ppid:
            return seen
        argv = read_argv(self._proc, stat.pid) if renamed else seen.argv
        fresh = make_entry(stat, argv or seen.argv, self._proc)
        return seen if (fresh.argv, fresh.comm, fresh.ppid) == (seen.argv, seen.comm, seen.ppid) else fresh

    def _admit(self, unseen: list[Entry]) -> None:
        strangers = [entry for entry in unseen if entry.pid not in self._members]
        if not strangers:
            return
        root, above = self._launch.root.pid, self._wrappers()
        pinned = dict.fromkeys(self._members.keys() - above, root)
        never = frozenset(own_and_callers(self._table, os.getpid()) - self._members.keys())
        forest = Forest(self._table, self._proc, never, pinned)
        for entry in strangers:
            home = forest.home(entry)
            if home is None or home.root != root:
                is_small = entry.kind == "companion" and entry.ppid in above
                home = Home(root, f"child of {entry.ppid}") if is_small else None
            if home is not None:
                self._members[entry.pid] = self._record(entry, home.because)

    def _wrappers(self) -> set[int]:
        """Members above the root: what they start later is not of this launch, a tee excepted."""
        found: set[int] = set()
        current = self._table.get(self._launch.root.pid)
        while current is not None and current.ppid in self._members and current.ppid not in found:
            found.add(current.ppid)
            current = self._table.get(current.ppid)
        return found

    def _record(self, entry: Entry, because: str) -> Process:
        return describe(entry, because, self._setting)


def _may_be_renamed(entry: Entry) -> bool:
    """Python's own children get their title once their imports are over, some a second one with the rank."""
    return entry.sighting.is_kin and not entry.sighting.rank
