"""Locks in the graph of waits: deadlocks, holders that are dead, named or at work, a kept interpreter lock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pytest

from hangdoc.criteria import Weighed, weigh
from hangdoc.features.features import Features, features
from hangdoc.features.launch_waits import latest_edges, standing_graph
from hangdoc.features.waits import ENDED, chain, chain_ends
from hangdoc.hypotheses.blocked_on_lock import HYPOTHESIS as LOCK
from hangdoc.hypotheses.deadlock import HYPOTHESIS as DEADLOCK
from hangdoc.hypotheses.gil_held import HYPOTHESIS as GIL_HELD
from hangdoc.hypotheses.gil_held_asleep import HYPOTHESIS as GIL_ASLEEP
from hangdoc.model.engine import Engine
from hangdoc.model.fd import OpenFiles
from hangdoc.model.link import Link
from hangdoc.model.locks import FutexWait, Gil, LockKind, Locks, PythonLock
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known, Missing
from hangdoc.model.snapshot import Payload
from hangdoc.model.thread import SystemCall
from tests.unit.features.synthetic import (
    PARKED,
    Readings,
    clock,
    cpu,
    dump,
    link,
    links,
    process,
    progress,
    stack,
    trace,
    waits,
    whole,
)

LAUNCHER, RANK, PEER = (ProcessKey(pid, 1) for pid in (100, 101, 102))
HELPER = 105
ACCEPT, READ = SystemCall(43, (3, 0, 0)), SystemCall(0, (3, 0, 1))
NO_FILES = OpenFiles(complete=True, files=(), nvidia=())


def mutexes(*pairs: tuple[int, int], alive: bool = True) -> Locks:
    found = tuple(FutexWait(tid, 64 * tid, "", "mutex", Known(owner), alive) for tid, owner in pairs)
    return Locks(found, Known(None), Known(()))


def rlock(waiting: int, holder: int | None) -> Locks:
    return Locks((), Known(None), Known((PythonLock(waiting, holder, 64, "rlock"),)))


def rounds(
    locks: Sequence[Locks | Missing | None],
    helper: SystemCall = PARKED,
    runs: tuple[int, ...] = (),
    waited: tuple[Link, ...] = (),
) -> list[Readings]:
    """A rank with a thread beside its main one; a launcher and a peer that read; runs: threads that always run."""
    found: list[Readings] = []
    for number, read in enumerate(locks):
        one: dict[tuple[str, ProcessKey | None], Payload | Missing] = {}
        for key in (LAUNCHER, RANK, PEER):
            tids = (key.pid, HELPER) if key == RANK else (key.pid,)
            one["cpu", key] = cpu(
                *(clock(number if tid in runs else 0, 0, number * (tid in runs), tid) for tid in tids)
            )
            one["progress", key] = progress()
            calls = {RANK.pid: PARKED, HELPER: helper}
            one["futex", key] = waits(*((tid, calls.get(tid, READ)) for tid in tids))
            one["links", key] = links(*(waited if key == RANK else ()))
            one["fds", key] = NO_FILES
            one["stacks", key] = dump(*((tid, 0) for tid in tids))
            if read is not None:
                one["locks", key] = read if key == RANK else Locks((), Known(None), Known(()))
        found.append(one)
    return found


def seen(given: Sequence[Readings]) -> Features:
    roster = [process(100, "launcher"), process(101, ppid=100), process(102, ppid=100)]
    of = trace(given, processes=roster, stacks=[stack("work")])
    return features(of, Engine(name="generic"), whole(of), steady=True)


def weighed(hypothesis: object, given: Sequence[Readings]) -> Weighed:
    return weigh(hypothesis, seen(given))  # type: ignore[arg-type]


CROSSWISE = mutexes((101, HELPER), (HELPER, 101))


def test_locks_crosswise_are_a_deadlock() -> None:
    """Two threads of one process are named, both; one reading, or a refused one, leaves it open."""
    found = weighed(DEADLOCK, rounds([CROSSWISE] * 4))
    assert found.grade == "confirmed"
    assert [(one.pid, one.tid) for one in found.culprits] == [(101, 101), (101, HELPER)]
    assert weighed(DEADLOCK, rounds([CROSSWISE, None, None, None])).grade != "confirmed"
    assert weighed(DEADLOCK, rounds([None, None, None, CROSSWISE])).grade == "undetermined"
    assert weighed(DEADLOCK, rounds([Missing("locks", "denied")] * 4)).grade == "undetermined"


def test_a_circle_through_a_child_and_a_lock() -> None:
    """The main thread waits for a lock, its holder for the peer, which waits for the holder's process: one graph."""
    given = rounds([mutexes((101, HELPER))] * 4, waited=(link(HELPER, 102),))
    back = [{**one, ("links", PEER): links(link(102, 101))} for one in given]
    assert weighed(DEADLOCK, back).grade == "confirmed"
    graph = standing_graph(seen(given))
    assert [end.thread for end in chain_ends(graph, (101, 101))] == [(102, 102)]
    assert [edge.through for edge in chain(graph, (101, 101), (102, 102))] == ["futex", "pipe"]


def test_a_deadlocked_thread_that_runs_is_none() -> None:
    """Whoever executes instructions is not stuck in a lock."""
    assert weighed(DEADLOCK, rounds([CROSSWISE] * 4, runs=(HELPER,))).grade == "ruled-out"


def test_a_dead_holder() -> None:
    """A lock whose holder is dead is never released: confirmed, the process is named; it is no deadlock."""
    for dead in (mutexes((101, 999), alive=False), rlock(101, None)):
        found = weighed(LOCK, rounds([dead] * 4))
        assert (found.grade, [(one.pid, one.tid) for one in found.culprits]) == ("confirmed", [(101, None)])
        assert "dead" in found.culprits[0].reason
        assert weighed(DEADLOCK, rounds([dead] * 4)).grade == "ruled-out"
        (end,) = chain_ends(standing_graph(seen(rounds([dead] * 4))), (101, 101))
        assert (end.thread, end.certain) == ((101, ENDED), True)


def test_a_dead_holder_needs_no_stacks() -> None:
    """A program that is not Python's: the main thread waits for a lock whose holder is dead, which says enough."""

    def without_stacks(tid: int) -> list[Readings]:
        no_stacks = {("stacks", key): Missing("stacks", "unsupported") for key in (LAUNCHER, RANK, PEER)}
        return [{**one, **no_stacks} for one in rounds([mutexes((tid, 999), alive=False)] * 4)]

    found = weighed(LOCK, without_stacks(101))
    assert (found.grade, [(one.pid, one.tid) for one in found.culprits]) == ("confirmed", [(101, None)])
    assert "held it when the process was forked" in found.culprits[0].reason
    # A helper's dead lock says nothing of a rank.
    assert weighed(LOCK, without_stacks(HELPER)).grade == "undetermined"


def python_circle(*pairs: tuple[int, int], through: Literal["rlock", "with"], sure: bool) -> Locks:
    return Locks((), Known(None), Known(tuple(PythonLock(*pair, 64 * pair[0], through, sure) for pair in pairs)))


def test_a_holder_that_is_not_proven_makes_nothing_certain() -> None:
    """A circle or a holder that rests on a with block, or on a number that may have been used again, is likely."""
    for through, sure, grade in (("rlock", True, "confirmed"), ("rlock", False, "likely"), ("with", False, "likely")):
        locks = python_circle((101, HELPER), (HELPER, 101), through=through, sure=sure)  # type: ignore[arg-type]
        assert weighed(DEADLOCK, rounds([locks] * 4)).grade == grade
        held = python_circle((101, HELPER), through=through, sure=sure)  # type: ignore[arg-type]
        assert weighed(LOCK, rounds([held] * 4)).grade == "likely"


def test_a_named_holder_is_the_culprit() -> None:
    """Before patience ends the holder alone makes no hang: it may be idle, or at work; it is named all the same."""
    held = [mutexes((101, HELPER))] * 4
    idle, at_work = weighed(LOCK, rounds(held, helper=ACCEPT)), weighed(LOCK, rounds(held, runs=(HELPER,)))
    assert (idle.grade, at_work.grade) == ("undetermined", "ruled-out")
    assert [(one.pid, one.tid) for one in idle.culprits] == [(101, HELPER)]
    assert weighed(DEADLOCK, rounds(held, helper=ACCEPT)).grade == "ruled-out"
    parked = weighed(LOCK, rounds(held))
    assert (parked.grade, [one.tid for one in parked.culprits]) == ("likely", [HELPER])
    assert "waits itself for a lock" in " ".join(parked.against)
    # So it is in a program of one process, whose chains have no end but its own main thread.
    given = [{key: one for key, one in reading.items() if key[1] in {RANK, None}} for reading in rounds(held)]
    of = trace(
        [{**one, ("locks", RANK): mutexes((HELPER, 101))} for one in given],
        processes=[process(101, "launcher")],
        stacks=[stack("work")],
    )
    alone = weigh(LOCK, features(of, Engine(name="generic"), whole(of), steady=True))
    assert (alone.grade, [one.tid for one in alone.culprits]) == ("likely", [101])


def test_older_traces_and_refused_readings() -> None:
    """Without the probe it is what it was; refused, nothing is claimed."""
    found = weighed(LOCK, rounds([None] * 4))
    assert (found.grade, [one.tid for one in found.culprits]) == ("likely", [101])
    assert weighed(LOCK, rounds([Missing("locks", "denied")] * 4)).grade == "undetermined"


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("condition", "a condition: no owner is recorded"),
        ("semaphore", "a semaphore: no owner is recorded"),
        ("barrier", "a barrier: no owner is recorded"),
        ("rwlock", "a lock that readers hold: no owner is recorded"),
        ("mutex", ""),
    ],
)
def test_what_records_no_owner_says_so(kind: LockKind, says: str) -> None:
    """Of a condition, a semaphore, a barrier and a lock that readers hold the report says that no owner is recorded."""
    read = Locks((FutexWait(101, 64, "", kind, Known(None)),), Known(None), Known(()))
    found = weighed(LOCK, rounds([read] * 4))
    told = next(one for one in found.for_ if "waits for a lock (futex)" in one)
    assert says in told
    assert ("no owner is recorded" in told) == bool(says)


def test_edges_of_locks_are_listed() -> None:
    """The document's edges have the locks, those for the interpreter lock last."""
    kept = Locks(CROSSWISE.futexes, Known(Gil(101, True, 7, (HELPER,))), Known(()))
    assert [edge.through for edge in latest_edges(seen(rounds([kept] * 4)))] == ["futex", "futex", "gil"]


def kept(switches: int = 7) -> Locks:
    return Locks((), Known(Gil(101, True, switches, (HELPER,))), Known(()))


def test_a_kept_interpreter_lock() -> None:
    """Kept for long by a thread that burns CPU while a peer waits: it may be a computation; handed on: not that."""
    found = weighed(GIL_HELD, rounds([kept()] * 12, runs=(101,)))
    assert (found.grade, [(one.pid, one.tid) for one in found.culprits]) == ("undetermined", [(101, 101)])
    assert any("a finite computation looks the same" in lack for lack in found.missing)
    assert "1 thread waits for the GIL, held by TID 101 in work (engine/program.py:1)" in found.headline
    assert weighed(GIL_HELD, rounds([kept()] * 5, runs=(101,))).grade == "undetermined"
    assert weighed(GIL_HELD, rounds([kept(at) for at in range(12)], runs=(101,))).grade == "ruled-out"
    assert weighed(GIL_HELD, rounds([kept()] * 12)).grade == "ruled-out"
    assert weighed(GIL_HELD, rounds([Missing("locks", "denied")] * 12, runs=(101,))).grade == "undetermined"


def test_an_interpreter_lock_that_is_kept_asleep() -> None:
    """A holder that sleeps is no busy loop, and keeps the lock all the same: it is said who, where and since when."""
    found = weighed(GIL_ASLEEP, rounds([kept()] * 12))
    assert (found.grade, [(one.pid, one.tid) for one in found.culprits]) == ("likely", [(101, 101)])
    assert "1 thread waits for the GIL, held by TID 101 in work (engine/program.py:1) for at least" in found.headline
    assert weighed(GIL_ASLEEP, rounds([kept()] * 5)).grade == "undetermined"
    assert weighed(GIL_ASLEEP, rounds([kept()] * 12, runs=(101,))).grade == "ruled-out"
    assert weighed(GIL_ASLEEP, rounds([kept(at) for at in range(12)])).grade == "ruled-out"
    assert weighed(GIL_ASLEEP, rounds([Missing("locks", "denied")] * 12)).grade == "undetermined"
