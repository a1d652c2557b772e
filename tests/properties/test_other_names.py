"""What things are called, in which order they were read and what the clocks showed is no part of a diagnosis."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from hangdoc.criteria import RANK
from hangdoc.diagnosis import diagnose
from hangdoc.model.diagnosis import Diagnosis
from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.reading import Known
from hangdoc.model.snapshot import Sample, Snapshot
from hangdoc.model.thread import SystemCall
from hangdoc.trace.reader import read
from hangdoc.trace.records import Header, Trace
from tests.patients.stage import HANGS

T = TypeVar("T")

HERE = Path(__file__).parents[1] / "golden"
GOLDEN = sorted(HERE.rglob("*.hangtrace"))
SERVERS = sorted(HERE.glob("*.hangtrace"))
SEEDS = st.integers(0, 1 << 32)
Change = Callable[[type, str, Any], Any]

IDENTITIES = re.compile(r"^(ppid|tracer_pid|owner_pid|pid|(\w+_)?tids?|writers)$")
"""How the fields are called that hold process or thread numbers."""

OUTSIDE = {0, 1}
"""Numbers that stay: nobody, and the first process."""

WAIT_FOR_A_CHILD = {61: 0, 247: 1, 260: 0, 95: 1}
"""Which argument of wait4 and waitid is a pid, by their numbers on x86-64 and aarch64."""


@lru_cache
def trace_of(golden: Path) -> Trace:
    return read(golden)


@lru_cache
def diagnosis_of(golden: Path) -> Diagnosis:
    return diagnose(trace_of(golden), "trace")


def rewritten(value: T, change: Change) -> T:
    """Return a record with each of its fields changed, the inner ones first; a Known is changed within."""
    if isinstance(value, Known):
        return value  # its field says what it is: see _field
    if isinstance(value, Struct):
        fields = {name: _field(type(value), name, getattr(value, name), change) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **fields)
    return tuple(rewritten(one, change) for one in value) if isinstance(value, tuple) else value  # type: ignore[return-value]


def _field(owner: type, name: str, value: Any, change: Change) -> Any:
    if isinstance(value, Known):
        return Known(_field(owner, name, value.value, change))
    return change(owner, name, rewritten(value, change))


def numbers_of(trace: Trace) -> list[int]:
    found: set[int] = set()

    def note(_owner: type, name: str, value: Any) -> Any:
        if IDENTITIES.match(name):
            found.update(one for one in (value if isinstance(value, tuple) else (value,)) if isinstance(one, int))
        return value

    rewritten(trace, note)
    return sorted(found - OUTSIDE)


def renumbered(trace: Trace, new: dict[int, int]) -> Trace:
    """Return the trace of the same launch with other process and thread numbers."""

    def change(owner: type, name: str, value: Any) -> Any:
        if name == "processes" and owner is Snapshot:
            return tuple(sorted(value, key=lambda process: process.key))
        if owner is SystemCall and name == "args":
            return value
        if not IDENTITIES.match(name) or not isinstance(value, int | tuple):
            return value
        return tuple(new.get(one, one) for one in value) if isinstance(value, tuple) else new.get(value, value)

    return _children_renumbered(rewritten(trace, change), new)


def _children_renumbered(trace: Trace, new: dict[int, int]) -> Trace:
    """The kernel shows a wait for a child with the child's number among its arguments."""

    def change(_owner: type, _name: str, value: Any) -> Any:
        if not isinstance(value, SystemCall) or value.number not in WAIT_FOR_A_CHILD:
            return value
        place = WAIT_FOR_A_CHILD[value.number]
        args = tuple(new.get(one, one) if at == place else one for at, one in enumerate(value.args))
        return SystemCall(value.number, args)

    return rewritten(trace, change)


ORDERED = {"stacks", "snapshots", "argv", "args", "frames", "events", "processes"}
"""Tuples whose order says something, or is that of another field; sequences of frames are no records' fields."""


def shuffled(trace: Trace, random: Random) -> Trace:
    """Return the trace as it would be if threads, descriptors, waits and samples had been read in another order."""

    def change(_owner: type, name: str, value: Any) -> Any:
        if name in ORDERED or not isinstance(value, tuple) or not all(isinstance(one, Struct) for one in value):
            return value
        return tuple(random.sample(value, len(value)))

    return rewritten(trace, change)


def ranks_permuted(trace: Trace, random: Random) -> Trace:
    """Return the trace of a launch in which the same processes have each other's ranks."""
    ranks = sorted(
        {process.rank.get("tp", -1) for snapshot in trace.snapshots for process in snapshot.processes} - {-1}
    )
    new = dict(zip(ranks, random.sample(ranks, len(ranks)), strict=True))

    def change(owner: type, name: str, value: Any) -> Any:
        if name == "rank":
            return {axis: new.get(rank, rank) if axis == "tp" else rank for axis, rank in value.items()}
        if owner is Process and name in {"title", "argv"}:
            return tuple(map(_retitled, value)) if isinstance(value, tuple) else _retitled(value)
        return value

    def _retitled(text: str) -> str:
        return re.sub(r"(?<=TP)\d+", lambda found: str(new.get(int(found[0]), found[0])), text)

    return rewritten(trace, change)


def clocks_shifted(trace: Trace, boot_ticks: int, wall_ns: int) -> Trace:
    """Return the trace as if the machine had booted at another time, and its wall clock were wrong."""
    ticks_per_s = trace.header.clock_ticks_per_s
    boot_ns = boot_ticks * 1_000_000_000 // ticks_per_s

    def change(owner: type, name: str, value: Any) -> Any:
        if value is None or not isinstance(value, int):
            return value
        if name.endswith("wall_ns"):
            return value + wall_ns
        if (owner, name) in {(Snapshot, "at_ns"), (Sample, "taken_ns")}:
            return value + boot_ns
        return value + boot_ticks if (owner, name) == (ProcessKey, "start_ticks") else value

    return rewritten(trace, change)


def check(before: Diagnosis, after: Diagnosis, new: dict[int, int] | None = None) -> None:
    """The same verdict, the same hypotheses that are likely or more, and in a hang the same culprits.

    Of two that start alike either may be named. Where a stack is missing, a hypothesis that asks one member after the
    other may be ruled out or undetermined, as it meets the one that is elsewhere or the unread one first.
    """
    numbers = new or {}
    for field in ("verdict", "grade", "phase"):
        assert getattr(after, field) == getattr(before, field), field
    assert weighty(after) == weighty(before)
    if before.verdict not in HANGS:
        return
    whom = {(numbers.get(one.pid, one.pid), one.role) for one in before.culprits}
    assert {(one.pid, one.role) for one in after.culprits} == whom


def weighty(diagnosis: Diagnosis) -> dict[str, str]:
    return {one.id: one.grade for one in diagnosis.hypotheses if RANK[one.grade] >= RANK["likely"]}


def names(golden: Path) -> str:
    return golden.relative_to(HERE).with_suffix("").as_posix()


def draw_numbers(trace: Trace, random: Random) -> dict[int, int]:
    old = numbers_of(trace)
    return dict(zip(old, random.sample(range(2, 1 << 22), len(old)), strict=True))


@pytest.mark.parametrize("golden", GOLDEN, ids=names)
@settings(max_examples=1, deadline=None)
@given(seed=SEEDS, boot=st.integers(-(10**5), 10**9), wall=st.integers(-(10**17), 10**17))
def test_all_at_once(golden: Path, seed: int, boot: int, wall: int) -> None:
    """Other numbers, another order, other ranks and other clocks, together: the same diagnosis."""
    trace, random = trace_of(golden), Random(seed)
    new = draw_numbers(trace, random)
    other = clocks_shifted(
        shuffled(ranks_permuted(renumbered(trace, new), random), random), max(boot, first(trace)), wall
    )
    check(diagnosis_of(golden), diagnose(other, "trace"), new)


def first(trace: Trace) -> int:
    """Return the earliest boot time that leaves every clock positive."""
    starts = [process.key.start_ticks for snapshot in trace.snapshots for process in snapshot.processes]
    return 1 - min(starts, default=0)


@pytest.mark.parametrize("golden", SERVERS, ids=names)
@settings(max_examples=3, deadline=None)
@given(seed=SEEDS)
def test_other_numbers(golden: Path, seed: int) -> None:
    """Other process and thread numbers change nothing."""
    new = draw_numbers(trace_of(golden), Random(seed))
    check(diagnosis_of(golden), diagnose(renumbered(trace_of(golden), new), "trace"), new)


@pytest.mark.parametrize("golden", SERVERS, ids=names)
@settings(max_examples=3, deadline=None)
@given(seed=SEEDS)
def test_another_order(golden: Path, seed: int) -> None:
    """The order in which threads, descriptors and processes were read, and who has which rank, changes nothing."""
    random = Random(seed)
    other = shuffled(ranks_permuted(trace_of(golden), random), random)
    check(diagnosis_of(golden), diagnose(other, "trace"))


@pytest.mark.parametrize("golden", SERVERS, ids=names)
@settings(max_examples=3, deadline=None)
@given(boot=st.integers(0, 10**9), wall=st.integers(-(10**17), 10**17))
def test_other_clocks(golden: Path, boot: int, wall: int) -> None:
    """When the machine was booted and what its wall clock shows change nothing."""
    check(diagnosis_of(golden), diagnose(clocks_shifted(trace_of(golden), boot, wall), "trace"))


def test_each_change_changes_something() -> None:
    """The changes reach what they are about: no number, order or clock of the original is left as it was."""
    golden = HERE / "absent-barrier.hangtrace"
    trace, random = trace_of(golden), Random(1)
    new = {number: number + (1 << 23) for number in numbers_of(trace)}
    assert min(numbers_of(renumbered(trace, new))) > 1 << 23
    assert shuffled(trace, random) != trace
    shifted = clocks_shifted(trace, 100, 1_000)
    assert shifted.snapshots[0].at_ns == trace.snapshots[0].at_ns + 100 * 10**9 // trace.header.clock_ticks_per_s
    assert isinstance(shifted.header, Header)
    assert shifted.header.started_wall_ns == trace.header.started_wall_ns + 1_000
    ranks = {process.key: process.rank for process in trace.snapshots[-1].processes}
    swapped = next(other for seed in range(20) if (other := ranks_permuted(trace, Random(seed))) != trace)
    assert {process.key: process.rank for process in swapped.snapshots[-1].processes} != ranks
