"""Lanes: what each thread did from round to round, those that say something first, the rest put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, TypeAlias

from hangdoc.features.dumps import ThreadHistory
from hangdoc.features.frames import bare_name
from hangdoc.hypotheses._signs import short_file
from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.reading import Known
from hangdoc.model.snapshot import Sample, Snapshot
from hangdoc.model.thread import CpuUse, ThreadClock, Waits
from hangdoc.report.material import Material

MOST_SLICES = 60
"""Slices of a lane. Arbitrary: narrower ones cannot be told apart."""

MOST_LANES = 40
"""Lanes that are drawn; the other threads are counted. Arbitrary: two screens."""

MOVES_RATIO = 0.02
"""Share of a core from which a thread is worth a lane of its own. Arbitrary: pollers that wake now and then need
less."""

FEWEST_ALIKE = 4
"""Threads of equal lanes from which on one stands for all of them. Arbitrary."""

Doing: TypeAlias = Literal["ran", "slept", "disk", "stopped", "ended", "unread"]
"""What a thread did in a slice: it ran or waited for a CPU, slept, slept so that nothing can wake it, was stopped."""

_DOING: dict[str, Doing] = {"D": "disk", "T": "stopped", "t": "stopped", "Z": "ended", "X": "ended"}


@dataclass(frozen=True)
class Slice:
    """What a thread did between two rounds; ratios of the time between them, 0 where it was not read."""

    doing: Doing
    run_ratio: float = 0.0
    demand_ratio: float = 0.0


@dataclass(frozen=True)
class Lane:
    """One thread, or alike ones. place: its innermost Python frame, "" without a stack; alike: how many they are."""

    processes: tuple[Process, ...]
    tid: int
    name: str
    place: str
    slices: tuple[Slice, ...]
    order: int
    accused: bool = False
    alike: int = 1

    @property
    def process(self) -> Process:
        """The process of the thread, or the first of several."""
        return self.processes[0]

    @property
    def is_main(self) -> bool:
        """Whether it is its process's main thread."""
        return self.tid == self.process.key.pid

    @property
    def demand_ratio(self) -> float | None:
        """The share of a core that it asked for; None when it was never read."""
        known = [one.demand_ratio for one in self.slices if one.doing != "unread"]
        return sum(known) / len(known) if known else None


@dataclass(frozen=True)
class Rest:
    """The threads of a process that have no lane. slept: those that did not run at all; names: with their counts."""

    process: Process
    threads: int
    slept: int
    names: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Lanes:
    """All threads of the launch. ends_s: end of each slice, in seconds since the first round."""

    ends_s: tuple[float, ...]
    shown: tuple[Lane, ...]
    rest: tuple[Rest, ...]


@dataclass(frozen=True)
class _Moment:
    """One process in one round: its threads' clocks and the letters of their states, as far as they were read."""

    at_ns: int
    clocks: Mapping[int, ThreadClock]
    letters: Mapping[int, str]


_Round: TypeAlias = Mapping[ProcessKey, Mapping[str, Sample]]
"""The samples of a round that count here, by process and probe; a process that had ended has no entry."""


def lanes(material: Material) -> Lanes:
    """Return every thread: in a lane of its own, in one with its likes, or counted."""
    shots = _picked(material.trace.snapshots)
    start_ns = shots[0].at_ns
    rounds = [_by_process(shot) for shot in shots]
    every = [lane for process in material.processes.values() for lane in _of_process(process, rounds, material)]
    every.sort(key=lambda lane: (lane.order, -(lane.demand_ratio or 0.0), lane.process.key, lane.tid))
    worth = [lane for lane in every if lane.order < _NOT_WORTH]
    shown = _alike(_of_one_name(worth))
    rest = [*shown[MOST_LANES:], *(lane for lane in every if lane.order >= _NOT_WORTH)]
    ends = tuple((shot.at_ns - start_ns) / 1e9 for shot in shots[1:])
    return Lanes(ends, tuple(shown[:MOST_LANES]), tuple(_rest(rest)))


def _picked(shots: Sequence[Snapshot]) -> Sequence[Snapshot]:
    """Return rounds that are evenly spread: what the kernel counts are totals, so that none is lost between them."""
    last = len(shots) - 1
    if last <= MOST_SLICES:
        return shots
    return [shots[round(last * number / MOST_SLICES)] for number in range(MOST_SLICES + 1)]


def _of_process(process: Process, rounds: Sequence[_Round], material: Material) -> Iterator[Lane]:
    readings = [_moment(process.key, one) for one in rounds]
    tids = sorted({tid for moment in readings if moment is not None for tid in moment.clocks})
    there = [process.key in one for one in rounds[1:]]
    member = material.seen.members.get(process.key)
    stacks = member.dumps.value.threads if member is not None and isinstance(member.dumps, Known) else {}
    names = _names(process.key, material)
    for tid in tids or [process.key.pid]:
        pairs = zip(there, pairwise(readings), strict=True)
        slices = tuple(_slice(tid, *pair) if is_there else Slice("ended") for is_there, pair in pairs)
        history = stacks.get(tid)
        lane = Lane((process,), tid, names.get(tid, ""), _place(history), slices, _NOT_WORTH)
        order = _order(lane, history, material)
        yield replace(lane, order=order, accused=order == 0)


def _moment(key: ProcessKey, of: _Round) -> _Moment | None:
    """Return what a round has of a process; None when its clocks were not read."""
    samples = of.get(key, {})
    use = samples["cpu"].reading if "cpu" in samples else None
    if not isinstance(use, Known) or not isinstance(use.value, CpuUse) or not isinstance(use.value.clocks, Known):
        return None
    letters = {key.pid: use.value.stat.state} | {state.tid: state.state for state in use.value.states}
    waits = samples["futex"].reading if "futex" in samples else None
    if isinstance(waits, Known) and isinstance(waits.value, Waits):
        letters |= {thread.tid: thread.state for thread in waits.value.threads}
    return _Moment(samples["cpu"].taken_ns, {clock.tid: clock for clock in use.value.clocks.value}, letters)


def _by_process(shot: Snapshot) -> _Round:
    found: dict[ProcessKey, dict[str, Sample]] = {process.key: {} for process in shot.processes}
    for sample in shot.samples:
        if sample.process is not None and sample.probe in {"cpu", "futex"}:
            found.setdefault(sample.process, {})[sample.probe] = sample
    return found


def _slice(tid: int, begin: _Moment | None, end: _Moment | None) -> Slice:
    if begin is None or end is None or tid not in end.clocks or end.at_ns <= begin.at_ns:
        return Slice("unread")
    span_ns = end.at_ns - begin.at_ns
    after, before = end.clocks[tid], begin.clocks.get(tid, ThreadClock(tid, 0, 0, 0))
    run = min(1.0, max(0, after.run_ns - before.run_ns) / span_ns)
    demand = min(1.0, run + max(0, after.wait_ns - before.wait_ns) / span_ns)
    doing = _DOING.get(end.letters.get(tid, ""), "ran" if demand >= MOVES_RATIO else "slept")
    return Slice(doing, run, demand)


def _names(key: ProcessKey, material: Material) -> dict[int, str]:
    uses = material.index.known("cpu", key, CpuUse, material.whole)
    return {state.tid: state.name for _, use in uses for state in use.states}


def _place(history: ThreadHistory | None) -> str:
    """Return the innermost frame without its line, which equal ranks do not share."""
    if history is None or history.leaf is None:
        return ""
    return f"{bare_name(history.leaf.function)} ({short_file(history.leaf.file)})"


_NATIVE, _NOT_WORTH = 6, 9


def _order(lane: Lane, history: ThreadHistory | None, material: Material) -> int:
    """Return which lanes come first: who has to move, the ranks, whoever is part of a wait, what moves; then none."""
    diagnosis, pid = material.diagnosis, lane.process.key.pid
    if any(one.pid == pid and lane.tid in (one.tid or pid, pid) for one in diagnosis.culprits):
        return 0
    ends = [end for wait in diagnosis.waits for end in (wait.from_, wait.to)]
    if any(end.pid == pid and end.tid == lane.tid and lane.tid != pid for end in ends):
        return 2
    if lane.is_main:
        return 1 if any(member.key == lane.process.key for member in material.seen.movers) else 4
    if history is not None and not history.is_helper:
        return 5
    moves = (lane.demand_ratio or 0.0) >= MOVES_RATIO or any(one.doing in ("disk", "stopped") for one in lane.slices)
    return _NOT_WORTH if not moves else 3 if history is not None else _NATIVE


def _alike(found: Sequence[Lane]) -> list[Lane]:
    """Let one lane stand for those of other processes that look the same; whoever has to move stands alone."""
    groups: dict[object, list[Lane]] = {}
    for lane in found:
        groups.setdefault((lane.process.key, lane.tid) if lane.accused else _looks(lane), []).append(lane)
    merged: list[Lane] = []
    for group in groups.values():
        if len({lane.process.key for lane in group}) < FEWEST_ALIKE:
            merged += group
            continue
        processes = tuple({process.key: process for lane in group for process in lane.processes}.values())
        merged.append(replace(group[0], processes=processes, alike=sum(lane.alike for lane in group)))
    return sorted(merged, key=lambda lane: lane.order)


def _of_one_name(found: Sequence[Lane]) -> list[Lane]:
    """Let the busiest native thread of a process stand for all of its name: there are dozens that poll."""
    groups: dict[object, list[Lane]] = {}
    for lane in found:
        is_native = lane.order == _NATIVE and lane.name
        groups.setdefault((lane.process.key, lane.name) if is_native else (lane.process.key, lane.tid), []).append(lane)
    return [replace(group[0], alike=len(group)) for group in groups.values()]


def _looks(lane: Lane) -> object:
    doings = tuple(sorted({one.doing for one in lane.slices}))
    tenth = None if lane.demand_ratio is None else round(lane.demand_ratio, 1)
    return (lane.order, lane.process.role, lane.is_main, lane.place, doings, tenth)


def _rest(found: Iterable[Lane]) -> Iterator[Rest]:
    by_process: dict[ProcessKey, list[Lane]] = {}
    for lane in found:
        for process in lane.processes:
            by_process.setdefault(process.key, []).append(
                replace(lane, processes=(process,), alike=lane.alike // len(lane.processes))
            )
    for _, group in sorted(by_process.items()):
        names: dict[str, int] = {}
        for lane in group:
            names[lane.name] = names.get(lane.name, 0) + lane.alike
        slept = sum(lane.alike for lane in group if all(one.doing == "slept" for one in lane.slices))
        most = sorted(names.items(), key=lambda item: (-item[1], item[0]))
        yield Rest(group[0].process, sum(names.values()), slept, tuple(most))
