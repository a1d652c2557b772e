"""What the instructions of real programs tell: loops of one line, native calls, recursion, sleep."""

from __future__ import annotations

import os
import subprocess

import pytest

from hangdoc.model.places import Places, ThreadPlaces
from hangdoc.model.reading import Missing
from hangdoc_probes import places
from tests.unit.probes.targets import as_somebody_else, become_nobody, known, missing, process_of, running, take

ONE_LINE = """
say("ready")
def wait(flag):
    while not flag: pass
wait([])
"""
NATIVE = """
import hashlib
def work():
    say("ready"); hashlib.pbkdf2_hmac("sha256", b"key", b"salt", 2_000_000_000)
work()
"""
DEEP = """
def walk(depth): return 1 if depth == 0 else walk(depth - 1) + walk(depth - 1)
say("ready")
while True: walk(18)
"""
ASLEEP = """
import signal
say("ready"); signal.pause()
"""


def turns_of(code: str, tries: int = 20) -> list[ThreadPlaces]:
    with running(code) as target:
        found = [sample for _ in range(tries) for sample in take(places.PROBE, target.process)]
        return [thread for sample in found for thread in known(sample, Places).threads]


def test_a_loop_of_one_line() -> None:
    """Every look is in the one frame, at different instructions, and the thread goes back."""
    _, *seen = turns_of(ONE_LINE)  # the first may still be in what says "ready"
    assert seen
    assert {(one.function, one.file) for one in seen} == {("wait", "<string>")}
    assert all(one.same_frame == one.looks for one in seen)
    assert sum(one.turns for one in seen) >= 3


def test_a_native_call_stands() -> None:
    """A thread in one native call is at one instruction, and never goes back."""
    *_, last = turns_of(NATIVE)  # the first may still be in what says "ready"
    assert (last.function, last.same_frame, last.places, last.turns) == ("work", last.looks, 1, 0)


def test_calls_leave_the_frame() -> None:
    """A computation through calls is in other frames from look to look."""
    assert all(one.same_frame < one.looks for one in turns_of(DEEP, tries=5))


def test_a_thread_that_sleeps_is_not_looked_at() -> None:
    """Where the main thread does not run there is nothing to tell, and nothing is read."""
    with running(ASLEEP) as target:
        looks = (take(places.PROBE, target.process) for _ in range(1000))  # it may still be on its way to sleep
        assert next(samples for samples in looks if not samples) == []
        assert take(places.PROBE, target.process) == []


def test_refused() -> None:
    """Without the right to trace the reading is missing."""
    if os.geteuid():
        pytest.skip("cannot be had here: only root can become somebody else")
    with running(ONE_LINE) as target:

        def reasons() -> list[str]:
            samples = [sample for _ in range(200) for sample in take(places.PROBE, target.process)][:1]
            return [missing(sample).reason for sample in samples]

        assert as_somebody_else(become_nobody, reasons) == ["denied"]


def test_no_python() -> None:
    """A program that is no Python has no such thread."""
    child = subprocess.Popen(["sh", "-c", "echo; while :; do :; done"], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        found = [sample for _ in range(50) for sample in take(places.PROBE, process_of(child.pid))]
        assert found
        assert all(isinstance(one.reading, Missing) or known(one, Places).threads == () for one in found)
    finally:
        child.kill()
        child.communicate()


ENDLESS = """
def wait():
    say("ready")
    while True: {body}
wait()
"""


@pytest.mark.parametrize(
    ("body", "endless"), [("pass", True), ("continue", True), ("x = 1", False), ("len(())", False)]
)
def test_a_loop_without_an_exit(body: str, endless: bool) -> None:
    """Only a loop that does nothing at all but jump back is one that no instruction of it leaves."""
    *_, last = turns_of(ENDLESS.format(body=body))  # the first may still be in what says "ready"
    assert last.function == "wait"
    assert last.endless is endless
