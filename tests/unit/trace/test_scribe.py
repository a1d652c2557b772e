"""The thread that writes: order, bounds, and what becomes of a job that does not return."""

from __future__ import annotations

import threading

import pytest

from hangdoc.errors import HangdocError
from hangdoc.trace.scribe import Scribe
from tests.unit.cli.commands import LONGEST_S


class Held:
    """A job that does not return until it is let go: a write that the disk does not take."""

    def __init__(self) -> None:
        self._began, self._may = threading.Event(), threading.Event()

    def job(self) -> None:
        self._began.set()
        assert self._may.wait(LONGEST_S)

    def wait(self) -> None:
        assert self._began.wait(LONGEST_S)

    def let_go(self) -> None:
        self._may.set()


def held(scribe: Scribe) -> Held:
    one = Held()
    scribe.put(one.job)
    one.wait()
    return one


def test_order() -> None:
    """Jobs are done in their order, urgent ones before the others, and the last one after all."""
    scribe, done = Scribe("test", 2), []
    holding = held(scribe)
    for name in "ab":
        assert scribe.put(lambda name=name: done.append(name))
    assert not scribe.put(lambda: done.append("no room"))
    assert scribe.put(lambda: done.append("must"), must=True)
    assert scribe.put(lambda: done.append("urgent"), urgent=True)
    holding.let_go()
    assert scribe.close(LONGEST_S, lambda: done.append("last"))
    assert done == ["urgent", "a", "b", "must", "last"]


def test_the_newest_in_place_of_the_others() -> None:
    """A job may take the place of those that wait."""
    scribe, done = Scribe("test", 1), []
    holding = held(scribe)
    for number in range(5):
        assert scribe.put(lambda number=number: done.append(number), in_place=True)
    holding.let_go()
    assert scribe.close(LONGEST_S)
    assert done == [4]


def test_a_job_that_never_returns() -> None:
    """It is told by how long it takes, no call waits longer than it may, and what waits behind it is given up."""
    scribe, done = Scribe("test", 5), []
    assert scribe.stalled_s == 0
    holding = held(scribe)
    assert scribe.stalled_s > 0
    with pytest.raises(TimeoutError):
        scribe.do(lambda: None, 0.01)
    scribe.put(lambda: done.append("never"))
    assert not scribe.close(0.01)
    holding.let_go()
    assert scribe.close(LONGEST_S)
    assert done == []


def test_what_a_job_raises() -> None:
    """A failure of the disk comes back to who waits for the job; a fault comes to who brings the next one."""
    scribe = Scribe("test", 5)

    def fails() -> None:
        raise HangdocError("no", "")

    with pytest.raises(HangdocError, match="no"):
        scribe.do(fails, LONGEST_S)
    assert scribe.do(lambda: 3, LONGEST_S) == 3
    scribe.put(lambda: {}["fault"])
    with pytest.raises(KeyError, match="fault"):
        scribe.close(LONGEST_S)
