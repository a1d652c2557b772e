"""What keeps an idle launch from being called hung: who may be parked, and what silence proves."""

from __future__ import annotations

import pytest

from hangdoc.criteria import Absent, Case, Present, Unread, weigh
from hangdoc.features.features import Features, features
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._waits import every_other_thread_is_parked
from hangdoc.hypotheses.blocked_on_lock import HYPOTHESIS as BLOCKED_ON_LOCK
from hangdoc.model.engine import Engine
from hangdoc.model.process import EngineName
from hangdoc.model.reading import Known, Missing
from hangdoc.model.snapshot import Payload
from hangdoc.model.stack import Stack
from hangdoc.model.thread import SystemCall
from tests.unit.features.synthetic import (
    KEY,
    PARKED,
    Readings,
    clock,
    cpu,
    dump,
    process,
    progress,
    stack,
    tail,
    trace,
    waits,
    whole,
)

POLL = SystemCall(7, (0x7F00, 1, 0xFFFFFFFF))
SHARED = SystemCall(202, (0x7F00, 0x109, 0, 0))
LOCK, EVENT = stack("take", "main"), stack("Condition.wait", file="lib/python3.11/threading.py")


def still(
    *calls: tuple[int, SystemCall], engine: EngineName = "generic", at: Stack = LOCK, log: bool = False
) -> Features:
    """A process all of whose threads sleep in these calls; its main thread has this stack."""
    readings: dict[tuple[str, object], Payload | Missing] = {
        ("cpu", KEY): cpu(*(clock(tid=tid) for tid, _ in calls)),
        ("progress", KEY): progress(),
        ("futex", KEY): waits(*calls),
        ("stacks", KEY): dump((100, 0)),
        ("fds", KEY): Missing("fds", "denied"),
    }
    if log:
        readings["log", None] = tail()
    rounds: list[Readings] = [readings] * 4  # type: ignore[list-item]
    of = trace(rounds, processes=[process()], stacks=[at], engine=engine)
    return features(of, Engine(name=engine), whole(of), steady=True)


@pytest.mark.parametrize(
    ("other", "parked"), [((101, PARKED), True), ((101, POLL), False), ((101, SHARED), False)], ids=str
)
def test_parked(other: tuple[int, SystemCall], parked: bool) -> None:
    """A native thread in a poll, or one that another process can wake, may release whatever the others wait for."""
    assert every_other_thread_is_parked(still((100, PARKED), other).members[KEY]) == Known(parked)


def test_a_thread_that_ran_meanwhile_is_not_parked() -> None:
    """A worker that waits whenever somebody looks, and worked in between, is alive."""
    rounds: list[Readings] = [
        {
            ("cpu", KEY): cpu(clock(), clock(0.0, 0.0, number, tid=101)),
            ("futex", KEY): waits((100, PARKED), (101, PARKED)),
        }
        for number in range(4)
    ]
    of = trace(rounds, processes=[process()])
    member = features(of, Engine(name="generic"), whole(of), steady=True).members[KEY]
    assert every_other_thread_is_parked(member) == Known(False)


def test_an_unread_thread_is_not_parked() -> None:
    """A thread whose call nobody read leaves it open."""
    seen = still((100, PARKED))
    of = trace(
        [{("cpu", KEY): cpu(clock(), clock(tid=101)), ("futex", KEY): waits((100, PARKED))}] * 4, processes=[process()]
    )
    assert isinstance(
        every_other_thread_is_parked(features(of, Engine(name="generic"), whole(of), steady=True).members[KEY]), Missing
    )
    assert every_other_thread_is_parked(seen.members[KEY]) == Known(True)


@pytest.mark.parametrize(
    ("engine", "at", "other", "present"),
    [
        ("generic", LOCK, PARKED, True),
        ("generic", EVENT, PARKED, False),
        ("generic", LOCK, POLL, False),
        ("sglang", EVENT, POLL, True),
    ],
)
def test_deadlock_or_idle(engine: EngineName, at: Stack, other: SystemCall, present: bool) -> None:
    """Without known idle loops only a main thread in a plain lock, and nobody to release it, is a deadlock."""
    seen = still((100, PARKED), (101, other), engine=engine, at=at)
    nobody_left = BLOCKED_ON_LOCK.essential[4](Case(seen, seen.members[KEY]))
    assert isinstance(nobody_left, Present if present else Unread)


def test_an_event_is_undetermined() -> None:
    """A process that waits for an event for ever may be idle: never more than undetermined."""
    assert weigh(BLOCKED_ON_LOCK, still((100, PARKED), at=EVENT)).grade == "undetermined"


def test_patience_without_a_stack_is_unread() -> None:
    """Without every rank's stack the phase is not known, and silence proves nothing however long it is."""
    of = trace([{("log", None): tail()}] * 4, processes=[process()])
    assert isinstance(
        signs.silence_outlasts_patience(features(of, Engine(name="generic"), whole(of), steady=True)), Unread
    )
    assert isinstance(signs.silence_outlasts_patience(still((100, PARKED), log=True)), Unread)


def test_work_of_a_launcher_is_progress_where_roles_are_unknown() -> None:
    """In a generic launch the parent may be who works: its reads are progress, its children's silence is no proof."""
    parent, child = process(100, "launcher"), process(101)
    keys = (parent.key, child.key)
    rounds: list[Readings] = [
        {
            ("progress", keys[0]): progress(number * 10**7),
            ("progress", keys[1]): progress(),
            ("cpu", keys[0]): cpu(clock()),
            ("cpu", keys[1]): cpu(clock(tid=101)),
        }
        for number in range(4)
    ]
    of = trace(rounds, processes=[parent, child])
    seen = features(of, Engine(name="generic"), whole(of), steady=True)
    assert isinstance(signs.nothing_progresses(Case(seen, seen.members[child.key])), Absent)
