"""Edges and starvation from readings of locks."""

from __future__ import annotations

from hangdoc.features.locks import Starvation, gil_starvation, lock_edges
from hangdoc.model.locks import FutexWait, Gil, Locks
from hangdoc.model.reading import Known, Missing


def mutex(tid: int, owner: int | None, address: int = 64) -> Locks:
    wait = FutexWait(tid, address, "", "mutex", Known(owner))
    return Locks((wait,), Known(None), Known(()))


def gil(holder: int, switches: int, waiting: tuple[int, ...] = (2, 3)) -> Locks:
    return Locks((), Known(Gil(holder, True, switches, waiting)), Known(()))


def test_a_wait_that_changed_is_no_edge() -> None:
    """The same thread, address and owner in every reading; one reading alone makes a weak edge."""
    assert [one.weak for one in lock_edges({1: (mutex(1, 2), mutex(1, 2))})] == [False]
    assert [one.weak for one in lock_edges({1: (mutex(1, 2),)})] == [True]
    for other in (mutex(1, 3), mutex(1, 2, 128), mutex(4, 2), mutex(1, None)):
        assert lock_edges({1: (other, mutex(1, 2))}) == ()
    assert lock_edges({1: ()}) == ()


def test_a_missing_owner_is_no_edge() -> None:
    """What could not be read leads nowhere."""
    missing = Missing("locks", "unsupported")
    read = Locks((FutexWait(1, 64, "", "unknown", missing),), missing, missing)
    assert lock_edges({1: (read, read)}) == ()


def test_starvation_counts_from_the_first_reading_without_a_switch() -> None:
    """Held for as long as the count stood; a lock that moved, or was seen once, starves nobody."""
    second = 10**9
    readings = [(0, gil(1, 6)), (second, gil(1, 7)), (3 * second, gil(1, 7))]
    assert gil_starvation(9, readings) == Starvation(9, 1, 2, 2.0)
    assert gil_starvation(9, readings[:2]) is None
    assert gil_starvation(9, readings[:1]) is None
    assert gil_starvation(9, []) is None


def test_who_waits_for_the_interpreter_lock_is_not_always_asleep() -> None:
    """Somebody who waited once and cannot have got it since still waits; who came last has not waited yet."""
    second = 10**9
    asked, awake = gil(1, 7), gil(1, 7, ())
    assert gil_starvation(9, [(0, awake), (second, asked), (3 * second, awake)]) == Starvation(9, 1, 2, 2.0)
    assert gil_starvation(9, [(0, awake), (second, awake), (3 * second, asked)]) is None
    assert [(edge.from_tid, edge.weak) for edge in lock_edges({9: (asked, awake)})] == [(2, False), (3, False)]
    assert lock_edges({9: (gil(1, 6), awake)}) == ()
