"""Who took part, as far as a log tells: ranks by their prefixes, pids where something names them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product

from hangdoc.logs.elastic import ROOT_CAUSE
from hangdoc.logs.pyspy import DumpedProcess
from hangdoc.logs.several import NODE, SERVER
from hangdoc.model.engine import Engine
from hangdoc.model.log import LogEvent
from hangdoc.model.process import Process, ProcessKey, Role

RANK_ROLES: dict[str, Role] = {"sglang": "scheduler", "vllm": "worker", "torchrun": "worker", "generic": "other"}
"""What the processes are that print a rank."""

MOST_EXPECTED = 512
"""Ranks that a launch's settings may call for. Arbitrary."""

_LAUNCHER: Role = "launcher"


class Roster:
    """Collects the processes of a log; who has no pid gets a number below 0."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._found: list[Process] = []
        self._pids: set[int] = set()
        self._ranks: set[tuple[tuple[str, int], ...]] = set()
        self._unnamed = 0

    def dumped(self, processes: Iterable[DumpedProcess]) -> list[tuple[ProcessKey, DumpedProcess]]:
        """Take the processes of stack dumps; return each with its key."""
        keyed = []
        for one in processes:
            role, rank = self._described(one)
            key = self._add(one.pid, role, rank, one.title)
            keyed.append((key, one))
        return keyed

    def _described(self, one: DumpedProcess) -> tuple[Role, dict[str, int]]:
        for title in self._engine.titles:
            if (match := title.pattern.search(one.title)) is not None:
                numbers = {axis: int(value) for axis, value in match.groupdict().items() if value is not None}
                return title.role, numbers or (dict(one.rank) if title.role in ("scheduler", "worker") else {})
        if any(launcher.search(one.title) for launcher in self._engine.launchers):
            return _LAUNCHER, {}
        return RANK_ROLES[self._engine.name], dict(one.rank)

    def logged(self, events: Sequence[LogEvent], settings: Mapping[str, str]) -> None:
        """Take the ranks that printed lines, and those that the settings call for where ranks are printed at all."""
        printed = {tuple(sorted(event.rank.items())): event for event in events if event.rank}
        pids = {
            tuple(sorted(event.rank.items())): int(event.numbers["pid"])
            for event in events
            if event.rank and event.kind != "crash" and event.numbers.get("pid", 0) > 0 and event.name != "ras-count"
        }
        pids |= {
            ((self._engine.rank_axis, int(event.numbers["rank"])),): int(event.numbers["pid"])
            for event in events
            if event.name == ROOT_CAUSE
        }
        for key in printed:
            if not _is_a_file_only(key, printed):
                self._rank(dict(key), pids.get(key, 0))
        for rank in _expected(settings, [dict(rank) for rank in printed]):
            self._rank(rank, 0)
        if not any(one.role != _LAUNCHER for one in self._found):
            self._add(0, RANK_ROLES[self._engine.name], {}, "")
        started = next((int(event.numbers.get("pid", 0)) for event in events if event.name == "http-started"), 0)
        if self._engine.name != "generic" and not any(one.role == _LAUNCHER for one in self._found):
            self._add(started, _LAUNCHER, {}, "")

    def processes(self) -> tuple[Process, ...]:
        """Return everybody, sorted by key."""
        return tuple(sorted(self._found, key=lambda one: one.key))

    def root(self) -> ProcessKey:
        """Return the launcher, or whoever comes first."""
        found = self.processes()
        return next((one.key for one in found if one.role == _LAUNCHER), found[0].key)

    def _rank(self, rank: dict[str, int], pid: int) -> None:
        if tuple(sorted(rank.items())) not in self._ranks:
            self._add(pid, RANK_ROLES[self._engine.name], rank, "")

    def _add(self, pid: int, role: Role, rank: dict[str, int], title: str) -> ProcessKey:
        if pid <= 0 or pid in self._pids:
            self._unnamed += 1
            pid = -self._unnamed
        self._pids.add(pid)
        self._ranks.add(tuple(sorted(rank.items())))
        key = ProcessKey(pid, 0)
        because = "named by the log" if pid > 0 else "its lines are in the log"
        self._found.append(Process(key=key, ppid=0, role=role, rank=rank, title=title[:200], member_because=because))
        return key


def _is_a_file_only(key: tuple[tuple[str, int], ...], printed: Collection[tuple[tuple[str, int], ...]]) -> bool:
    """Tell whether a rank is no more than the number of a file in which others print ranks of their own."""
    return len(key) == 1 and key[0][0] in (NODE, SERVER) and any(key[0] in other and other != key for other in printed)


def _expected(settings: Mapping[str, str], printed: Sequence[Mapping[str, int]]) -> list[dict[str, int]]:
    """Return every rank that the launch has on all axes which the log's prefixes name."""
    axes = sorted({axis for rank in printed for axis in rank})
    sizes = [int(settings.get(f"{axis}_size", "0")) for axis in axes]
    if not axes or 0 in sizes or settings.get("nnodes", "1") != "1":
        return []
    total = 1
    for size in sizes:
        total *= size
    if total > MOST_EXPECTED or any(set(rank) != set(axes) for rank in printed):
        return []
    return [dict(zip(axes, numbers, strict=True)) for numbers in product(*(range(size) for size in sizes))]
