"""The wait graph: who waits stands left of who is waited for, and who waits alike is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from hangdoc.diagnosis import UNSURE
from hangdoc.model.diagnosis import Culprit, Wait, WaitEnd
from hangdoc.report.material import Material, material
from hangdoc.report.page.graph import waits as drawn
from hangdoc.report.waitgraph import Graph, graph
from tests.unit.features.synthetic import process, trace
from tests.unit.report.recordings import many_ranks_page


def made(
    edges: Sequence[tuple[int, int]], *, ranks: int = 4, moves: int | None = None, unsure: bool = False
) -> Material:
    """A launch of ranks 1, 2, ... with these waits; threads are numbered like 12 (the second of process 1)."""
    processes = [process(pid=number, role="scheduler", rank={"tp": number}) for number in range(1, ranks + 1)]
    found = material(trace([{}, {}], processes), "trace")
    waits = tuple(
        Wait(
            from_=WaitEnd(pid=start, tid=start),
            to=WaitEnd(pid=end, tid=end),
            through="pipe",
            detail=UNSURE if unsure else "",
        )
        for start, end in edges
    )
    culprit = Culprit(pid=moves, start_ticks=1, tid=moves, role="scheduler", rank={}, reason="stands")
    culprits = () if moves is None else (culprit,)
    return replace(found, diagnosis=msgspec.structs.replace(found.diagnosis, waits=waits, culprits=culprits))


def columns(found: Graph) -> dict[str, int]:
    return {node.title: node.column for node in found.nodes}


def test_a_chain_goes_from_left_to_right() -> None:
    """Each stands one column left of whom it waits for; the end is who has to move."""
    found = graph(made([(1, 2), (2, 3)], moves=3))
    assert columns(found) == {"scheduler TP1": 0, "scheduler TP2": 1, "scheduler TP3": 2}
    assert [node.title for node in found.nodes if node.accused] == ["scheduler TP3"]


def test_a_circle_has_an_end() -> None:
    """Who waits for each other is drawn side by side, whoever else waits for them left of it."""
    found = graph(made([(1, 2), (2, 3), (3, 2)], moves=2))
    assert columns(found) == {"scheduler TP1": 0, "scheduler TP2": 1, "scheduler TP3": 1}
    assert len(found.arrows) == 3


def test_who_waits_alike_is_one() -> None:
    """63 ranks that wait for one are one box with one arrow."""
    found = graph(many_ranks_page()[0])
    assert [(node.title, node.accused) for node in found.nodes][:2] == [
        ("scheduler TP0, TP2-TP63", False),
        ("scheduler TP1", True),
    ]
    assert [(arrow.through, arrow.count) for arrow in found.arrows] == [("barrier", 63)]


def test_who_waits_for_somebody_else_stands_apart() -> None:
    """Equals are put together only as far as they wait for equals."""
    found = graph(made([(1, 7), (2, 7), (3, 7), (4, 8), (5, 8)], ranks=8, moves=8))
    assert "scheduler TP1-TP3" in columns(found)
    assert {"scheduler TP4", "scheduler TP5", "scheduler TP7"} <= set(columns(found))


def test_threads_of_one_process() -> None:
    """Where threads of a process wait for each other, each is a box of its own."""
    of = made([(1, 1)])
    wait = Wait(from_=WaitEnd(pid=1, tid=1), to=WaitEnd(pid=1, tid=12), through="futex", detail="")
    back = Wait(from_=WaitEnd(pid=1, tid=12), to=WaitEnd(pid=1, tid=1), through="futex", detail="")
    found = graph(replace(of, diagnosis=msgspec.structs.replace(of.diagnosis, waits=(wait, back))))
    assert [node.below for node in found.nodes] == ["pid 1", "pid 1 thread 12"]


def test_waits_that_say_nothing_are_not_drawn() -> None:
    """They are counted, and stand in the list."""
    of = made([(1, 2), (3, 2)], unsure=True)
    found = graph(of)
    assert (found.nodes, found.arrows, found.unsure) == ((), (), 2)
    assert "2 waits that look the same when nothing is wrong" in drawn(of)
    assert "<svg" not in drawn(of)


def test_who_is_not_there_is_drawn() -> None:
    """A node that never came has no pid, and a box all the same."""
    of = made([(1, 2)])
    absent = Culprit(pid=None, start_ticks=None, tid=None, role="other", rank={}, reason="node 1 never came")
    found = graph(replace(of, diagnosis=msgspec.structs.replace(of.diagnosis, culprits=(absent,))))
    assert [(node.title, node.absent, node.accused) for node in found.nodes][-1] == ("node 1 never came", True, True)
