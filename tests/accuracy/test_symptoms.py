"""An illness of SGLang that did not show during the look is told, and what showed is not."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
from msgspec.structs import replace

from tests.accuracy.records import Record
from tests.accuracy.servers import CASES
from tests.accuracy.symptoms import Moment, not_dead, not_shown
from tests.accuracy.table import table
from tests.patients.vitals import CLOCK_TICKS
from tests.sglang.cases import ALL
from tests.sglang.looks import Look, main_thread
from tests.sglang.scenarios import SPINS, WAITS, WAKES, Doing

SPINNING = "import sys; print(flush=True)\nwhile True: pass"
WAITING = "import sys; print(flush=True); sys.stdin.read()"


def moment(at_s: float, *ranks: Look, members: frozenset[int] = frozenset({1})) -> Moment:
    return Moment(at_s, dict(enumerate(ranks)), members)


def look(ticks: int = 0, switches: int = 0) -> Look:
    return Look("S", ticks, switches, "")


@pytest.mark.parametrize(
    ("doing", "burnt_ratio", "switches", "lacks"),
    [
        (SPINS, 0.5, 0, ""),
        (SPINS, 0.01, 0, "used 0.01 of a core only"),
        (WAITS, 0.0, 0, ""),
        (WAITS, 0.5, 0, "used 0.50 of a core"),
        (WAKES, 0.01, 3, ""),
        (WAKES, 0.0, 0, "was never woken"),
    ],
)
def test_what_each_rank_does(doing: Doing, burnt_ratio: float, switches: int, lacks: str) -> None:
    """A rank that is to spin has burnt CPU, one that is to wait has not, one that is to wake has been woken."""
    before, after = moment(0.0, look()), moment(10.0, look(round(burnt_ratio * 10 * CLOCK_TICKS), switches))
    said = not_shown((doing,), before, after)
    assert said == (f"rank 0 {lacks}" if lacks else "")


def test_a_rank_that_was_not_there_is_told() -> None:
    """A rank without a title cannot be looked at, and a member that ended is no illness of the others."""
    assert not_shown((WAITS, WAITS), moment(0.0, look()), moment(1.0, look())) == "rank 1 could not be looked at"
    ended = moment(1.0, look(), members=frozenset())
    assert not_shown((WAITS,), moment(0.0, look()), ended) == "a member ended during the look"


@contextmanager
def running(program: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-S", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def taken(pid: int) -> Mapping[int, Look]:
    return {0: main_thread(pid)}


@pytest.mark.parametrize(("program", "doing", "other"), [(SPINNING, SPINS, WAITS), (WAITING, WAITS, SPINS)])
def test_real_processes(program: str, doing: Doing, other: Doing) -> None:
    """A loop spins and a read of a silent pipe waits, by the kernel's counters, and neither passes for the other."""
    with running(program) as process:
        before = Moment(0.0, taken(process.pid), frozenset())
        until = time.monotonic() + 30.0  # only a safety net
        while doing is SPINS and main_thread(process.pid).ticks < before.ranks[0].ticks + 20:
            assert time.monotonic() < until
            time.sleep(0.02)
        after = Moment(1.0, taken(process.pid), frozenset())  # as if it had taken a second
    assert not_shown((doing,), before, after) == ""
    assert not_shown((other,), before, after) != ""


def test_a_killed_member_shows_as_a_zombie() -> None:
    """While nobody has asked for its end it is one; a living process is none."""
    with running(WAITING) as process:
        assert not_dead(process.pid) == f"pid {process.pid} is no zombie"
        process.kill()
        assert process.stdout is not None
        process.stdout.read()  # the end of file comes when it is gone
        until = time.monotonic() + 30.0
        while not_dead(process.pid) and time.monotonic() < until:
            time.sleep(0.01)
        assert not_dead(process.pid) == ""


def test_every_ill_case_is_looked_at() -> None:
    """Each case of the rig that is ill is one of the accuracy's."""
    assert {case for case in ALL if not case.startswith("healthy")} <= CASES.keys()


def test_an_illness_that_did_not_show_counts_for_nothing() -> None:
    """A verdict on a launch whose illness was not seen is neither right nor wrong."""
    record = Record(group="sglang", name="busy-init", load="none", round=0, accepted=("busy-wait",), verdict="healthy")
    unseen = replace(record, state="inconclusive", why="rank 0 used 0.01 of a core only")
    right = replace(record, name="busy-warmup", verdict="busy-wait", culprits=("tp0",), culprit_right=True)
    text = table([unseen, right], "")
    assert "| verdict right | 1 of 1 (" in text
    assert "- busy-init (load none, round 0)" in text.partition("Inconclusive:")[2]
