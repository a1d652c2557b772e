"""A patient that does not show what its truth says is not taken for a proof of anything."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.patients import vitals
from tests.patients.stage import PULSE_BYTES, PULSE_FILE, Patient, Stage, Truth
from tests.patients.vitals import chart, not_seen

SLEEPS, BURNS = "import signal; signal.pause()", "while True: pass"
SICK, WELL = Truth(frozenset({"blocked"}), "rank1"), Truth(frozenset({"healthy"}), "")
WORK_S = 0.5


def patient_of(truth: Truth, *, burns: tuple[str, ...] = (), goes_on: bool = False) -> Patient:
    return Patient("a", lambda _: None, truth, ("rank1",), "", "", burns, goes_on)


@contextmanager
def running(program: str) -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-S", "-c", program])
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / PULSE_FILE).write_bytes(bytes(PULSE_BYTES))
    return tmp_path


def use_cpu(parts: dict[int, str], folder: Path) -> None:
    """Wait until the only part has used some CPU time."""
    (pid,) = parts
    enough = chart(parts, folder).parts[pid].ticks + WORK_S * vitals.CLOCK_TICKS
    while chart(parts, folder).parts[pid].ticks < enough:
        pass


def test_who_should_burn_and_sleeps_shows_nothing(folder: Path) -> None:
    """A spin that does not spin is inconclusive."""
    with running(SLEEPS) as pid, running(BURNS) as clock:
        before = chart({pid: "rank1"}, folder)
        use_cpu({clock: ""}, folder)
        assert "of a core only" in not_seen(patient_of(WELL, burns=("rank1",)), {pid: "rank1"}, before, folder)


def test_who_should_stand_and_burns_shows_nothing(folder: Path) -> None:
    """A blocked culprit that uses CPU is inconclusive, and one that has to burn is not."""
    with running(BURNS) as pid:
        before = chart({pid: "rank1"}, folder)
        use_cpu({pid: "rank1"}, folder)
        assert "of a core" in not_seen(patient_of(SICK), {pid: "rank1"}, before, folder)
        assert not not_seen(patient_of(WELL, burns=("rank1",)), {pid: "rank1"}, before, folder)


def test_who_ends_shows_nothing(folder: Path) -> None:
    """A part that ends during the look makes it inconclusive."""
    with running(SLEEPS) as pid:
        before = chart({pid: "rank1"}, folder)
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert not_seen(patient_of(WELL), {pid: "rank1"}, before, folder) == "rank1 ended during the look"


def test_who_never_goes_on_shows_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A patient that should go on and does not beat its pulse is inconclusive; one beat is enough."""
    monkeypatch.setattr(vitals, "PULSE_WAIT_S", 0.0)
    goes_on = patient_of(WELL, goes_on=True)
    before = chart({}, folder)
    assert not_seen(goes_on, {}, before, folder) == "it never went on"
    Stage(-1, str(folder)).beat()
    assert not not_seen(goes_on, {}, before, folder)
