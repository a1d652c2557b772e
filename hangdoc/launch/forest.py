"""Divide the process table into launches: each process belongs to one launch, or to none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from hangdoc.launch.age import is_older
from hangdoc.launch.commands import SHELLS, base_name, is_fork_server
from hangdoc.launch.orphans import gather
from hangdoc.launch.table import Entry, Table, children_of


@dataclass(frozen=True)
class Home:
    """Where a process belongs. root: pid of the launch's root; because: one clause for people."""

    root: int
    because: str


@dataclass
class Forest:
    """A table of processes and the launches in it.

    Rule, in this order, for a process P:
    1. A launcher of an engine is the root of a launch, unless an ancestor is one already (a nested launcher, a forked
       copy). So two launches of one parent, shell or Python, are two.
    2. P belongs where its parent belongs. Across a different process group *and* session this holds only inside an
       engine's launch, for Python's own children and for forks (same command line): a program that was put into a
       session of its own by an unknown program is one of its own.
    3. The parent of a process that carries an engine's title is a root, whatever its name: an own script that uses the
       engine as a library, or a multiprocessing child that runs a server.
    4. Without a parent of its own (it was adopted by init or a subreaper, or its parent is a shell, a wrapper or a
       manager) P belongs to the launch of its process group's leader, then of its session's leader, if that leader
       is a member of a launch. Not what a living shell started beside it in one job (`LAUNCH | python own.py`).
    5. Children of an engine or of Python's multiprocessing that nobody claims are gathered as orphans (orphans.py).
    6. Any other program is the root of a launch of its own; a shell, a manager, a host or a wrapper never is.

    A parent is an adopter, not a parent, when it did not start before its child (age.py), is pid 1, or shares neither
    session nor process group with a child that leads neither. That fails for a subreaper inside the child's own
    session: the child then counts as the subreaper's, which is in the same launch unless the subreaper runs several.

    never: processes that belong nowhere (hangdoc and who called it). pinned: processes already known to belong to a
    root: members stay members when they are re-parented.
    """

    table: Table
    proc: Path
    never: frozenset[int] = frozenset()
    pinned: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._claims: dict[int, Home | None] = {}

    @cached_property
    def children(self) -> dict[int, list[Entry]]:
        """Entries by parent."""
        return children_of(self.table)

    @cached_property
    def engine_parents(self) -> frozenset[int]:
        """Programs that are no launcher by name but the parent of a process with an engine's title.

        A child of Python's multiprocessing may be one: a driver can run each of several servers in such a child.
        """
        found: set[int] = set()
        for entry in self.table.values():
            parent = self.parent(entry) if entry.sighting.is_titled else None
            while parent is not None and (parent.sighting.is_titled or is_fork_server(parent.argv)):
                parent = self.parent(parent)
            if parent is not None and parent.kind == "program" and not parent.sighting.is_launcher:
                found.add(parent.pid)
        return frozenset(found)

    @cached_property
    def orphans(self) -> dict[int, Home]:
        """The homes of engine children that nobody claims."""
        claims = {entry.pid: self.claim(entry) for entry in self.table.values()}
        tops = [self.table[pid] for pid, home in claims.items() if home and home.root == pid and self._is_orphan(pid)]
        hosts = {one.pid: host.pid for one in tops if (host := self.host(one)) is not None}
        settled = [(self.table[pid], h.root) for pid, h in claims.items() if h and self._is_live_engine(h.root)]
        inside = {one.pid for one in tops} | {one.pid for one, _ in settled}
        outsiders = [one for one in self.table.values() if one.pid not in inside and not self._may_be_lost(one)]
        found = {pid: Home(root, because) for pid, root, because in gather(tops, settled, outsiders, hosts, self.proc)}
        for group, roots in self._dead_leaders(found).items():
            if len(roots) == 1:
                root = roots.pop()
                found = {pid: Home(group, h.because) if h.root == root else h for pid, h in found.items()}
                found[group] = Home(group, "the launcher, dead and not waited for")
        return found

    @cached_property
    def supervisors(self) -> frozenset[int]:
        """Programs of unknown name that started an engine's launcher: what else they adopt is not their own."""
        launchers = (entry for entry in self.table.values() if entry.sighting.is_launcher)
        parents = (self.table.get(entry.ppid) for entry in launchers)
        return frozenset(p.pid for p in parents if p is not None and p.sighting.engine is None)

    def parent(self, entry: Entry) -> Entry | None:
        """Return a process's real parent; None when it was adopted or its parent is not in the table."""
        parent = self.table.get(entry.ppid)
        if parent is None or parent.kind == "kernel" or not is_older(parent.key, entry.key):
            return None
        if parent.pid == 1:
            return parent if parent.sighting.is_launcher else None
        if entry.sighting.is_titled and parent.pid in self.supervisors:
            return None
        leads = entry.pid in {entry.group, entry.session}
        return parent if leads or _share(parent, entry) else None

    def host(self, entry: Entry) -> Entry | None:
        """Return the notebook or test runner that started a process, and lives; None when somebody else did."""
        parent = self.parent(entry)
        return parent if parent is not None and parent.kind == "host" and parent.state not in "ZX" else None

    def home(self, entry: Entry) -> Home | None:
        """Say to which launch a process belongs; None for what never belongs to one."""
        claimed = self.claim(entry)
        dead = entry.state in "ZX" and entry.pid == entry.group
        if claimed is None or not (dead or self._is_orphan(claimed.root)):
            return claimed
        top = self.orphans.get(claimed.root)
        return claimed if top is None else Home(top.root, top.because if claimed.root == entry.pid else claimed.because)

    def members(self, root: int) -> dict[int, Home]:
        """Return all processes of a launch, by pid."""
        homes = {entry.pid: self.home(entry) for entry in self.table.values()}
        found = {pid: home for pid, home in homes.items() if home is not None and home.root == root}
        if not self.is_engine_root(root):
            self._add_descendants(root, found)
        return found

    def has_launcher(self, root: int) -> bool:
        """Say whether a root is what started its launch; otherwise it is the oldest of what a dead launcher left."""
        return not self._is_orphan(root)

    def is_engine_root(self, root: int) -> bool:
        """Say whether a root is an engine's: by its command line, its own title or its children's."""
        return self._is_live_engine(root) or self._is_orphan(root)

    def claim(self, entry: Entry) -> Home | None:
        """Apply the rules; an orphan is its own root here."""
        if entry.pid in self.pinned:
            return Home(self.pinned[entry.pid], "")
        if entry.pid not in self._claims:
            self._claims[entry.pid] = None  # ends a cycle, which only a table read while it changed can have
            self._claims[entry.pid] = self._claim(entry)
        return self._claims[entry.pid]

    def _claim(self, entry: Entry) -> Home | None:
        if entry.pid in self.never or entry.kind not in {"program", "companion", "wrapper"}:
            return None
        parent = self.parent(entry)
        above = self.claim(parent) if parent is not None else None
        if parent is not None and above is not None and self._follows(entry, parent, above):
            return Home(above.root, f"child of {parent.pid}")
        if entry.sighting.is_launcher:
            return Home(entry.pid, "the launcher")
        if entry.pid in self.engine_parents:
            return Home(entry.pid, "the parent of an engine's processes")
        return self._led(entry) or (Home(entry.pid, "the program itself") if entry.kind != "wrapper" else None)

    def _follows(self, entry: Entry, parent: Entry, above: Home) -> bool:
        if self.is_engine_root(above.root):
            return True
        if entry.sighting.is_launcher or entry.pid in self.engine_parents:
            return False
        return _share(parent, entry) or entry.sighting.is_kin or entry.argv == parent.argv

    def _led(self, entry: Entry) -> Home | None:
        caller = self.table.get(entry.ppid)
        if caller is not None and caller.pid in self.never and caller.group == entry.group:
            return None  # hangdoc's own child; one that it only adopted is in another process group
        for number, what in ((entry.group, "process group"), (entry.session, "session")):
            leader = self.table.get(number)
            if leader is None or not is_older(leader.key, entry.key) or self._is_job(entry, leader):
                continue
            home = self.claim(leader) if leader.kind != "companion" and leader.state not in "ZX" else None
            if home is not None and not is_older(self.table[home.root].key, entry.key):
                continue  # older than the launch: what an earlier launch of the same script left behind
            if home is not None and (self.is_engine_root(home.root) or not entry.sighting.is_titled):
                return Home(home.root, f"{what} of {leader.pid}")
        return None

    def _is_job(self, entry: Entry, leader: Entry) -> bool:
        """Say whether a living shell put a program into one job with a launch: what it pipes that into, say.

        A shell adopts nobody: its children are its own. The shell is older than the leader, else it is the leader's.
        """
        parent = self.parent(entry)
        if parent is None or entry.kind == "companion" or parent.pid == 1 or not parent.argv:
            return False
        return base_name(parent.argv[0]) in SHELLS and is_older(parent.key, leader.key)

    def _add_descendants(self, root: int, found: dict[int, Home]) -> None:
        # Seen from the top, a generic launch is everything below its root that is no engine's launch.
        for child in self.children.get(root, []):
            home = self.home(child)
            if home is None or self.is_engine_root(home.root) or self.parent(child) is None:
                continue
            found.setdefault(child.pid, Home(root, f"child of {root}"))
            self._add_descendants(child.pid, found)

    def _dead_leaders(self, found: dict[int, Home]) -> dict[int, set[int]]:
        """Map the dead leader of a process group to the roots of the orphans in that group."""
        roots: dict[int, set[int]] = {}
        for pid, home in found.items():
            leader = self.table.get(self.table[pid].group)
            if leader is not None and leader.state in "ZX" and leader.pid not in self.pinned:
                roots.setdefault(leader.pid, set()).add(home.root)
        return roots

    def _may_be_lost(self, entry: Entry) -> bool:
        """Say whether a program may be what a dead launch lost: it has neither a parent nor children."""
        is_program = entry.kind in {"program", "companion", "wrapper"} and entry.pid not in self.never
        return is_program and self.parent(entry) is None and entry.pid not in self.children

    def _is_orphan(self, root: int) -> bool:
        entry = self.table.get(root)
        if entry is None or not entry.sighting.is_kin or self._is_live_engine(root):
            return False
        # A host's own helpers and pool workers look like an engine's: only those with a title certainly are.
        return entry.sighting.is_titled or self.host(entry) is None

    def _is_live_engine(self, root: int) -> bool:
        entry = self.table.get(root)
        # A root that is pinned and gone was taken for a launch when it was found.
        return entry is None or entry.sighting.is_launcher or root in self.engine_parents or root in self.pinned


def _share(one: Entry, other: Entry) -> bool:
    return one.group == other.group or one.session == other.session
