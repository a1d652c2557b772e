"""Ranks are compared by where they stand: who is alone, who waits, and who moves."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hangdoc import discovery
from hangdoc.features.features import Features, features
from hangdoc.features.ranks import Comparison, compare, comparison_of, merge, normalised
from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.reading import Missing
from hangdoc.model.stack import Frame, Stack
from tests.unit.features.synthetic import Readings, dump, trace, whole

C10D = "lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
LOGGER = "lib/python3.11/site-packages/torch/distributed/c10d_logger.py"
CACHE = (Frame("check", "engine/cache.py", 20), Frame("step", "engine/program.py", 7))
STEP = (Frame("step", "engine/program.py", 3),)
BARRIER: Stack = (Frame("barrier", C10D, 5000), Frame("wrapper", LOGGER, 81), *STEP)
REDUCE: Stack = (Frame("all_reduce", C10D, 3075), *CACHE)
SLEEP: Stack = (Frame("late", "engine/program.py", 40), Frame("step", "engine/program.py", 2))
ELSEWHERE: Stack = (Frame("later", "engine/program.py", 50), Frame("step", "engine/program.py", 2))


def rank(pid: int, **numbers: int) -> Process:
    return Process(key=ProcessKey(pid, 1), ppid=1, role="scheduler", rank=numbers or {"tp": pid - 100})


def seen(stacks: Sequence[Stack | Sequence[Stack] | None], ranks: Sequence[Process] = ()) -> Features:
    """Ranks with these main stacks, one for each round or one for all; None: not to be read."""
    processes = tuple(ranks) or tuple(rank(100 + number) for number in range(len(stacks)))
    table: list[Stack] = []
    rounds: list[Readings] = []
    for number in range(3):
        readings = {}
        for process, told in zip(processes, stacks, strict=True):
            if told is None:
                readings["stacks", process.key] = Missing("stacks", "denied")
                continue
            one = told if isinstance(told[0], Frame) else told[number]
            table.append(one)  # type: ignore[arg-type]
            readings["stacks", process.key] = dump((process.key.pid, len(table) - 1))
        rounds.append(readings)
    of = trace(rounds, processes=processes, stacks=table, engine="sglang")
    return features(of, discovery.engine("sglang"), whole(of), steady=True)


def only(of: Features) -> Comparison:
    (found,) = compare(of)
    return found


def pids(found: Comparison) -> list[list[int]]:
    return [[key.pid for key in one.members] for one in found.classes]


def test_equal_places_are_one_class() -> None:
    """Ranks in one function chain are together whatever their lines; the larger class comes first."""
    other_line: Stack = (BARRIER[0], BARRIER[1], Frame("step", "engine/program.py", 4))
    found = only(seen([SLEEP, BARRIER, other_line]))
    assert pids(found) == [[101, 102], [100]]


def test_the_inside_of_a_collective_does_not_count() -> None:
    """Who sends and who receives within one collective stand in one place, and so do qualified and bare names."""
    sends: Stack = (Frame("broadcast", C10D, 2974), Frame("broadcast_object_list", C10D, 3500), *STEP)
    receives: Stack = (
        Frame("_tensor_to_object", C10D, 100),
        Frame("wrapper", LOGGER, 81),
        Frame("broadcast_object_list", C10D, 3520),
        Frame("Scheduler.step", "engine/program.py", 9),
    )
    assert normalised(sends) == normalised(receives)


@pytest.mark.parametrize(
    ("stacks", "odd"),
    [
        ([BARRIER, BARRIER, BARRIER], []),
        ([SLEEP, BARRIER], [100]),
        ([SLEEP, SLEEP, BARRIER], [100, 101]),
        ([REDUCE, BARRIER, BARRIER], [100]),
        ([REDUCE, BARRIER], []),
        ([SLEEP, ELSEWHERE, ELSEWHERE], [100]),
        ([SLEEP, ELSEWHERE], []),
    ],
)
def test_the_odd_one_out(stacks: list[Stack], odd: list[int]) -> None:
    """Who is outside the collective is odd, however many; among equals the fewer are; a draw names nobody."""
    found = only(seen(stacks))
    assert [key.pid for one in found.odd for key in one.members] == odd


def test_a_stack_that_moves_is_told_from_one_that_stands() -> None:
    """Stacks that differ between dumps move, to the line; what they share is where the rank is."""
    moved: Stack = (Frame("late", "engine/program.py", 41), Frame("step", "engine/program.py", 2))
    found = only(seen([[SLEEP, moved, SLEEP], BARRIER]))
    assert {one.members[0].pid: one.motion for one in found.classes} == {100: "moving", 101: "frozen"}
    parted = only(seen([[SLEEP, ELSEWHERE, SLEEP]]))
    assert [(one.motion, [frame.function for frame in one.stack]) for one in parted.classes] == [("moving", ["step"])]


def test_nobody_is_odd_while_the_others_move() -> None:
    """In a healthy server one rank is in a broadcast and another is not: as long as they move, none is accused."""
    broadcast: Stack = (Frame("broadcast", C10D, 2974), *STEP)
    later: Stack = (Frame("broadcast", C10D, 2974), Frame("step", "engine/program.py", 5))
    assert only(seen([SLEEP, [broadcast, later, broadcast]])).odd == ()
    assert [one.members[0].pid for one in only(seen([[SLEEP, ELSEWHERE, SLEEP], broadcast])).odd] == [100]


def test_one_dump_shows_no_motion() -> None:
    """A single dump says neither that a stack moves nor that it stands."""
    of = trace([{("stacks", ProcessKey(100, 1)): dump((100, 0))}], processes=[rank(100)], stacks=[SLEEP])
    one = only(features(of, discovery.engine("generic"), whole(of), steady=True))
    assert one.classes[0].motion == "seen-once"


def test_a_rank_without_a_stack_is_listed_as_unread() -> None:
    """A rank whose stack could not be read is in no class, and said to be missing."""
    found = only(seen([SLEEP, None]))
    assert found.unread == (ProcessKey(101, 1),)
    assert found.class_of(ProcessKey(101, 1)) is None


def test_replicas_and_stages_are_not_compared() -> None:
    """Replicas that repeat tensor ranks, and stages of a pipeline, run each at its own pace: they are not compared."""
    replicas = [rank(100, dp=0, tp=0), rank(101, dp=0, tp=1), rank(102, dp=1, tp=0), rank(103, dp=1, tp=1)]
    of = seen([BARRIER, BARRIER, SLEEP, SLEEP], replicas)
    assert [pids(found) for found in compare(of)] == [[[100, 101]], [[102, 103]]]
    stages = [rank(100, pp=0, tp=0), rank(101, pp=1, tp=0)]
    assert len(compare(seen([BARRIER, SLEEP], stages))) == 2
    in_step = [rank(100, dp=0, tp=0), rank(101, dp=1, tp=1)]
    assert len(compare(seen([BARRIER, SLEEP], in_step))) == 1


def test_a_rank_finds_its_group() -> None:
    """A rank's comparison is that of its group; a process that is no rank has none."""
    of = seen([BARRIER, SLEEP])
    assert comparison_of(of, ProcessKey(101, 1)) is compare(of)[0]
    assert comparison_of(of, ProcessKey(7, 1)) is None


def test_merging_keeps_everybody() -> None:
    """Whether stacks are one object, equal or only alike, each owner ends in exactly one group."""
    alike = (BARRIER[0], BARRIER[1], Frame("step", "engine/program.py", 99))
    merged = merge([(0, BARRIER), (1, BARRIER), (2, BARRIER[:1] + BARRIER[1:]), (3, alike), (4, SLEEP)])
    assert list(merged.values()) == [[0, 1, 2, 3], [4]]
