"""The rig itself: every case falls ill as its table says, nothing outlives its owner, provisioning says what failed."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.sglang import cases, guard, provision
from tests.sglang.cases import on
from tests.sglang.launches import Launch, LaunchError, start_keeper
from tests.sglang.looks import Look, main_thread
from tests.sglang.scenarios import CHILD_IMPORTS, LAUNCHER_IMPORTS, LIST, SPINS, WAITS, WAKES, Doing

INTERVAL_S = 0.1
MANY_LOOKS = 600
TWO_SLEEPERS = "import subprocess, sys; p = subprocess.Popen(['sleep', 'infinity']); print(p.pid, flush=True); p.wait()"


def test_each_injection_has_its_file_and_each_file_its_scenario() -> None:
    """No injection file is left unused and no scenario names one that is not there."""
    assert {known.inject for known in LIST if known.inject} == {
        path.name for path in (provision.HERE / "inject").glob("*.py")
    }


def sleepers() -> subprocess.Popen[str]:
    """A session of two processes, there once the first has told the second's number."""
    program = [sys.executable, "-c", TWO_SLEEPERS]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout
    assert len(guard.members(process.pid)) in (1, 2)
    process.stdout.readline()
    return process


def test_a_session_is_killed_whole_and_no_other() -> None:
    """Killing a launch's session takes every process of it and none of another one."""
    condemned, spared = sleepers(), sleepers()
    guard.kill_session(condemned.pid)
    assert guard.members(condemned.pid) == []
    assert len(guard.members(spared.pid)) == 2
    guard.kill_session(spared.pid)
    assert (condemned.wait(), spared.wait()) == (-9, -9)


@pytest.mark.parametrize(("last_words", "left"), [(b"", 0), (b"done\n", 2)])
def test_the_keeper_kills_the_session_of_a_dead_owner(last_words: bytes, left: int) -> None:
    """A launch whose owner died without a word is killed; one whose owner said it is done is not."""
    keeper, kept = start_keeper(), sleepers()
    keeper.communicate(b"%d\n" % kept.pid + last_words)
    assert len(guard.members(kept.pid)) == left
    guard.kill_session(kept.pid)
    kept.wait()


def failing_step(directory: Path, code: str) -> provision.Step:
    command = provision.Command("pip install nothing", (sys.executable, "-c", code), hint="do this")
    return provision.Step(directory / "part", directory / "part" / "there", "recipe", (command,))


def test_a_failed_step_says_what_failed_and_what_to_do(tmp_path: Path) -> None:
    """A provisioning step that fails names its command, its last line and what to do."""
    step = failing_step(tmp_path, "import sys; sys.exit('ERROR: no such package')")
    with pytest.raises(provision.ProvisionError, match=r"'pip install nothing' failed \(ERROR: no such.*do this"):
        provision.perform(step)
    assert not step.done()


def test_a_half_finished_step_is_removed_and_redone(tmp_path: Path) -> None:
    """What an interrupted provisioning left is removed and done again, never taken for whole."""
    step = failing_step(
        tmp_path, f"import pathlib as p; d = p.Path({str(tmp_path)!r}, 'part'); d.mkdir(); (d / 'there').touch()"
    )
    step.target.mkdir()
    (step.target / "there").touch()
    (step.target / "rest").touch()
    assert not step.done()
    provision.perform(step)
    assert step.done()
    assert [path.name for path in step.target.iterdir()] == ["there"]


@on("healthy-tp1", "healthy-tp1@0.5.8")
def test_the_launcher_and_its_children_have_marked_their_imports(launch: Launch) -> None:
    """The marks of the import phase name the launcher and one of its children."""
    launcher, child = (int(launch.mark_path(sign).read_text()) for sign in (LAUNCHER_IMPORTS, CHILD_IMPORTS))
    assert launcher == launch.pid
    assert child in {*launch.scheduler_pids().values(), launch.detokenizer_pid()}


@on(*[name for name in cases.ALL if name.startswith("healthy")])
def test_a_healthy_server_answers(launch: Launch) -> None:
    """A healthy server generates as many tokens as it is asked for."""
    answer = launch.generate(tokens=8)
    assert len(answer["output_ids"]) == 8  # type: ignore[arg-type]


def changed(pid: int, first: Look) -> Look:
    """The first look that differs from `first`, or the last of many."""
    for _ in range(MANY_LOOKS):
        time.sleep(INTERVAL_S)
        look = main_thread(pid)
        if look.ticks > first.ticks + 10 or look.switches > first.switches:
            break
    return look


def still(pid: int) -> bool:
    """For a second on end it slept and nothing woke it."""
    looks = [main_thread(pid)]
    for _ in range(10):
        time.sleep(INTERVAL_S)
        looks.append(main_thread(pid))
    return {look.state for look in looks} == {"S"} and len({look.switches for look in looks}) == 1


def does(pid: int, doing: Doing) -> None:
    first = main_thread(pid)
    if doing is WAITS:
        # More than once: it sets its mark just before it begins to wait.
        assert any(still(pid) for _ in range(10))
    elif doing is SPINS:
        assert changed(pid, first).ticks > first.ticks + 10
    elif doing is WAKES:
        assert changed(pid, first).switches > first.switches


@on(*cases.ALL)
def test_each_rank_does_what_the_table_says(launch: Launch) -> None:
    """Each rank's main thread spins, waits or wakes as the scenario's table says, by the kernel's counters."""
    schedulers = launch.scheduler_pids()
    for rank, doing in enumerate(launch.scenario.ranks):
        if rank in schedulers:
            does(schedulers[rank], doing)


@on("busy-init")
def test_a_sign_that_does_not_come_is_told_with_the_log(launch: Launch) -> None:
    """A sign that does not come in time fails the test with the log's tail."""
    with pytest.raises(LaunchError, match=r"(?s)no Log\(pattern='never'\) in 0 s; log ends:\n.*Load weight begin"):
        launch.wait_for("never", deadline_s=0)
