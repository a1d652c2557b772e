"""hangdoc killed with -9 at each step: nobody is left stopped or frozen, no bystander is hit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.commands import LONGEST_S, REPOSITORY, argv, environment, wait_until
from tests.unit.ending.theatre import Theatre, lives, state

PROGRAM = Path(__file__).with_name("killed_midway.py")


STEPS = (
    "second roll",
    "evidence",
    "last look",
    "asking",
    "killing",
    "wrappers",
    "watching",
    "memory and ports",
    "removal",
)


def kill_clean(theatre: Theatre, when: str, at: int, pid: int, snapshot: tuple[str, ...] = ("--no-snapshot",)) -> int:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), when, str(at), str(pid), "--yes", "--json", *snapshot],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=LONGEST_S,
        cwd=theatre.folder,
        env={**environment(), "PYTHONPATH": str(REPOSITORY)},
        check=False,
    )
    return done.returncode


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_killed_at_a_signal(theatre: Theatre, when: str, at: int) -> None:
    """Before or after the first SIGTERM and each SIGKILL: whoever is left runs, and a second call ends the rest."""
    bystander = theatre.bystander()
    cast = theatre.launch("drains", "rank0", "rank1")
    assert kill_clean(theatre, when, at, cast["rank0"].pid) == -9
    assert [name for name, key in cast.items() if state(key) in {"T", "t"}] == []
    left = [key for key in cast.values() if lives(key)]
    if left:
        # Whoever was sent the last signal may be dead by then, and nobody is left to end (4).
        assert theatre.kill_clean(str(left[0].pid), "--yes", "--no-snapshot").code in {0, 4}
    assert theatre.left() == {bystander.pid}


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_killed_where_a_step_begins(theatre: Theatre, step: str) -> None:
    """From the plan to the removal of files: whoever is left runs, and a second call ends the rest."""
    bystander = theatre.bystander()
    cast = theatre.launch("drains", "rank0", "rank1")
    snapshot = () if step == "evidence" else ("--no-snapshot",)
    assert kill_clean(theatre, step, 0, cast["rank0"].pid, snapshot) == -9
    assert [name for name, key in cast.items() if state(key) in {"T", "t"}] == []
    left = [key for key in cast.values() if lives(key)]
    is_before = STEPS.index(step) <= STEPS.index("killing")
    assert bool(left) == is_before
    if left:
        assert theatre.kill_clean(str(left[0].pid), "--yes", "--no-snapshot").code == 0
    assert theatre.left() == {bystander.pid}


@pytest.mark.slow
def test_killed_while_the_evidence_is_recorded(theatre: Theatre) -> None:
    """In the middle of the snapshot, while probes and py-spy read the members: all of them run."""
    cast = theatre.launch("plain", "rank0", "rank1")
    command = [*argv("kill-clean", str(cast["rank0"].pid), "--yes")]
    with subprocess.Popen(command, cwd=theatre.folder, env=environment(), stdin=subprocess.DEVNULL) as hangdoc:
        wait_until(lambda: list(theatre.folder.glob("*.hangtrace*")) != [])
        hangdoc.kill()
    wait_until(lambda: all(state(key) not in {"T", "t"} for key in cast.values()))
    assert all(lives(key) for key in cast.values())


@pytest.mark.slow
@pytest.mark.parametrize("at", [1, 2, 3])
def test_killed_while_freezing(theatre: Theatre, at: int) -> None:
    """After each SIGSTOP: the guardian sees that hangdoc is gone, and everybody goes on."""
    cast = theatre.launch("drains", "rank0", "rank1")
    # The first signal is the SIGTERM, which the launcher hears and does not follow.
    assert kill_clean(theatre, "frozen", at + 1, cast["rank0"].pid) == -9
    wait_until(lambda: all(state(key) not in {"T", "t"} for key in cast.values()))
    assert all(lives(key) for key in cast.values())


def test_a_frozen_launch_goes_on_when_hangdoc_is_killed(theatre: Theatre) -> None:
    """All members stopped, hangdoc killed: every one of them runs again without anybody's doing."""
    cast = theatre.launch("ignores_sigterm", "rank0", "rank1")
    script = FREEZE.format(pids=[key.pid for key in cast.values()])
    freezer = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=REPOSITORY)
    assert freezer.stdout is not None
    assert freezer.stdout.read(1) == b"x"
    assert {state(key) for key in cast.values()} == {"T"}
    freezer.kill()
    freezer.wait()
    freezer.stdout.close()
    wait_until(lambda: all(state(key) != "T" for key in cast.values()))
    assert all(lives(key) for key in cast.values())


FREEZE = """
import os, time
from pathlib import Path
from hangdoc.ending.freeze import Freezer
from hangdoc.launch.pidfd import hold
from hangdoc.launch.table import read_stat
from hangdoc.model.process import ProcessKey
handles = [hold(ProcessKey(pid, read_stat(Path("/proc"), pid).start_ticks)) for pid in {pids}]
with Freezer() as freezer:
    assert freezer.stop(handles)
    while any(read_stat(Path("/proc"), one.key.pid).state != "T" for one in handles):
        time.sleep(0.01)
    os.write(1, b"x")
    time.sleep(1000)
"""
