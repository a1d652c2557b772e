"""The roster follows the launch: who joins, who leaves, who stays."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from hangdoc.launch import table
from hangdoc.launch.find import find_launch
from hangdoc.launch.roster import Roster
from hangdoc.launch.table import read_argv
from hangdoc.model.process import Process
from tests.unit.launch.stage import Stage


def pids(processes: tuple[Process, ...]) -> set[int]:
    return {process.key.pid for process in processes}


def test_nothing_changes_while_nothing_happens(stage: Stage) -> None:
    """Two rounds in a row give what was found at first, sorted by key."""
    server = stage.run(stage.server("a"), "a")
    launch = find_launch(server.pid)
    roster = Roster(launch)
    assert roster.refresh() == launch.processes
    assert roster.refresh() == launch.processes
    assert list(roster.refresh()) == sorted(launch.processes, key=lambda process: process.key)


def spawner(stage: Stage, name: str) -> dict[str, object]:
    """Children of the real multiprocessing; one takes its title when the test writes into its FIFO."""
    os.mkfifo(stage.directory / name)
    return {
        "tp0": {"argv": ["sglang::scheduler_TP0"], "spawn": True, "go": str(stage.directory / name)},
        "tp1": {"argv": ["sglang::scheduler_TP1"]},
    }


def test_a_title_is_seen_when_it_comes(stage: Stage) -> None:
    """A child of the real multiprocessing is "other" until it renames itself, then a scheduler with its rank."""
    server = stage.run(stage.server("a", spawner(stage, "go")), "a")
    stage.wait_for("a.tp0")
    roster = Roster(find_launch(server.pid))
    before = {process.key.pid: process for process in roster.refresh()}[server.children["tp0"]]
    (stage.directory / "go").write_text("now")
    stage.wait_for("a.tp0.renamed")
    after = {process.key.pid: process for process in roster.refresh()}[server.children["tp0"]]
    assert (before.role, before.rank) == ("other", {})
    assert (after.role, after.rank, after.title) == ("scheduler", {"tp": 0}, "sglang::scheduler_TP0")
    assert after.key == before.key


def test_a_member_that_died_leaves_and_a_zombie_stays(stage: Stage) -> None:
    """A child that its parent never waits for stays with its role and rank; after its parent died it is gone."""
    server = stage.run(stage.server("a"), "a")
    roster = Roster(find_launch(server.pid))
    roster.refresh()
    stage.end(server.children["tp1"])
    zombie = {process.key.pid: process for process in roster.refresh()}[server.children["tp1"]]
    assert (zombie.role, zombie.rank) == ("scheduler", {"tp": 1})
    stage.end(server.pid)
    assert server.pid not in pids(roster.refresh())


def test_a_zombie_found_at_the_first_look(stage: Stage) -> None:
    """Its short name is all that is left: an engine's process all the same, once it had renamed itself."""
    server = stage.run(stage.server("a", spawner(stage, "go")), "a")
    (stage.directory / "go").write_text("now")
    stage.wait_for("a.tp0.renamed")
    stage.end(server.children["tp0"])
    launch = find_launch(server.pid)
    zombie = {process.key.pid: process for process in launch.processes}[server.children["tp0"]]
    assert (zombie.role, zombie.rank, zombie.title) == ("scheduler", {}, "[sglang::schedul]")
    assert Roster(launch).refresh() == launch.processes


def test_members_stay_when_their_launcher_dies(stage: Stage) -> None:
    """Re-parented to init, two schedulers and the detokenizer are members still, with their new parent."""
    server = stage.run(stage.server("a"), "a")
    roster = Roster(find_launch(server.pid))
    roster.refresh()
    stage.end(server.pid)
    left = roster.refresh()
    assert pids(left) == set(server.children.values())
    assert all(process.ppid != server.pid for process in left)


def test_who_joins(stage: Stage) -> None:
    """A later child joins, re-parented or not; a second launch of the same script does not."""
    os.mkfifo(stage.directory / "go")
    second = shlex.join(stage.server("b"))
    stage.script(f"{shlex.join(stage.server('a'))} &\nread answer < {stage.directory}/go\n{second} &\nwait\n")
    server = stage.wait_for("a")
    roster = Roster(find_launch(server.pid))
    before = pids(roster.refresh())
    (stage.directory / "go").write_text("now\n")
    other = stage.wait_for("b")
    assert not pids(roster.refresh()) & other.pids
    assert pids(roster.refresh()) == before


def test_a_new_child_of_a_member_joins(tmp_path: Path) -> None:
    """A compiler that a scheduler starts is a member in the next round, with the reason."""
    launch_root(tmp_path)
    roster = Roster(find_launch(70, proc=tmp_path), tmp_path)
    roster.refresh()
    fake(tmp_path, 90, ppid=71, group=70, argv="/usr/bin/ptxas x", start=200)
    fake(tmp_path, 91, ppid=1, group=70, argv="helper", start=201)
    fake(tmp_path, 92, ppid=1, group=92, argv="stranger", start=202)
    joined = {process.key.pid: process for process in roster.refresh()}
    assert set(joined) == {70, 71, 90, 91}
    assert (joined[90].role, joined[90].member_because) == ("compiler", "child of 71")
    assert joined[91].member_because == "process group of 70"


def test_a_reused_pid_is_not_the_old_member(tmp_path: Path) -> None:
    """The same number with another start time is somebody else, in the same round already."""
    launch_root(tmp_path)
    roster = Roster(find_launch(70, proc=tmp_path), tmp_path)
    assert pids(roster.refresh()) == {70, 71}
    fake(tmp_path, 71, ppid=1, group=71, argv="stranger", start=300)
    assert pids(roster.refresh()) == {70}


def test_a_reused_parent_is_no_parent(tmp_path: Path) -> None:
    """A process that started before its parent was adopted: it does not belong to that parent's launch."""
    launch_root(tmp_path)
    fake(tmp_path, 60, ppid=70, group=60, argv="older", start=50)
    assert pids(find_launch(70, proc=tmp_path).processes) == {70, 71}


def test_a_pid_reused_while_it_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its stat and its command line a member ended and a stranger got its pid: neither is taken."""
    launch_root(tmp_path)
    fake(tmp_path, 72, ppid=70, argv="sglang::scheduler_TP1", start=150)

    def read_late(proc: Path, pid: int) -> tuple[str, ...]:
        if pid == 72:
            fake(tmp_path, 72, ppid=70, argv="sglang::scheduler_TP1", start=151)
        return read_argv(proc, pid)

    monkeypatch.setattr(table, "read_argv", read_late)
    assert pids(find_launch(70, proc=tmp_path).processes) == {70, 71}


def launch_root(proc: Path) -> None:
    fake(proc, 70, ppid=1, group=70, argv="python3 -m sglang.launch_server --tp 2", start=100)
    fake(proc, 71, ppid=70, group=70, argv="sglang::scheduler_TP0", start=110)


def fake(proc: Path, pid: int, *, ppid: int, argv: str, start: int, group: int = 0) -> None:
    home = proc / str(pid)
    (home / "task" / str(pid)).mkdir(parents=True, exist_ok=True)
    group = group or ppid
    stat = f"{pid} (x) S {ppid} {group} {group} 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {start} 4096 3 0"
    (home / "stat").write_text(stat)
    (home / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in argv.split()))
