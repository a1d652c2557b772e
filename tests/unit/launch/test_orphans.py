"""Processes whose launcher is gone come out as one launch, never with another launch's."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from hangdoc.errors import HangdocError
from hangdoc.launch.find import find_launch
from tests.unit.launch.stage import PATIENTS, TP2, Actor, Stage


def pids(pid: int) -> set[int]:
    return {process.key.pid for process in find_launch(pid).processes}


def left(actor: Actor) -> set[int]:
    return set(actor.children.values())


def run_two(stage: Stage, *, children: tuple[dict[str, object], dict[str, object]]) -> tuple[Actor, Actor]:
    """Two launches of one script: one session, one process group."""
    commands = [shlex.join(stage.server(name, plan)) for name, plan in zip("ab", children, strict=True)]
    stage.script(f"{commands[0]} &\n{commands[1]} &\nwait\n")
    return stage.wait_for("a"), stage.wait_for("b")


def test_siblings_of_a_dead_launcher_are_one_launch(stage: Stage) -> None:
    """Orphaned schedulers and detokenizer with init as parent: one launch, engine known, root the oldest."""
    server = stage.run(stage.server("a"), "a")
    stage.end(server.pid)
    for pid in left(server):
        launch = find_launch(pid)
        assert pids(pid) == left(server)
        assert launch.engine == "sglang"
        assert launch.root.pid == server.children["tp0"]
        assert launch.settings == {}


def test_an_orphan_with_a_process_group_of_its_own(stage: Stage) -> None:
    """It still shares the dead launcher's session."""
    children = {**TP2, "tp2": {"argv": ["sglang::scheduler_TP2"], "own_group": True}}
    server = stage.run(stage.server("a", children), "a")
    stage.end(server.pid)
    assert pids(server.children["tp2"]) == pids(server.children["tp0"]) == left(server)


def test_orphans_of_two_launches_with_groups_of_their_own(stage: Stage) -> None:
    """Each process group's orphans are one launch."""
    first, second = stage.run(stage.server("a"), "a"), stage.run(stage.server("b"), "b")
    stage.end(first.pid)
    stage.end(second.pid)
    assert pids(first.children["tp1"]) == left(first)
    assert pids(second.children["detokenizer"]) == left(second)


SPAWNED = {
    "tp0": {"argv": ["sglang::scheduler_TP0"], "spawn": True},
    "d": {"argv": ["sglang::detokenizer"], "spawn": True},
}


def test_orphans_of_one_process_group_are_told_apart_by_their_pipes(stage: Stage) -> None:
    """Real multiprocessing children of two dead launchers of one script: the resource_tracker's pipe divides them."""
    first, second = run_two(stage, children=(dict(SPAWNED), dict(SPAWNED)))
    for name in ("a.tp0.renamed", "a.d.renamed", "b.tp0.renamed", "b.d.renamed"):
        stage.wait_for(name)
    stage.end(first.pid)
    stage.end(second.pid)
    ours, theirs = find_launch(first.children["tp0"]), find_launch(second.children["d"])
    assert pids(first.children["d"]) >= left(first)
    assert pids(second.children["tp0"]) >= left(second)
    assert not {p.key for p in ours.processes} & {p.key for p in theirs.processes}
    assert sum("resource_tracker" in p.title for p in ours.processes) == 1


def test_orphans_stay_out_of_the_launch_that_still_lives(stage: Stage) -> None:
    """Two launches of one script, one launcher dead: its orphans are not taken for the other's."""
    first, second = run_two(stage, children=(TP2, TP2))
    stage.end(first.pid)
    assert pids(first.children["tp0"]) == left(first)
    assert pids(second.pid) >= second.pids
    assert not pids(second.pid) & left(first)


def test_an_orphan_stays_out_of_the_next_launch_of_its_script(stage: Stage) -> None:
    """A script that starts the launch again: what the first one left is older, whatever both inherited."""
    first_command, second_command = shlex.join(stage.server("a")), shlex.join(stage.server("b"))
    stage.script(f"exec 9< <(sleep 1000)\n{first_command}\n{second_command} &\nwait\n")
    first = stage.wait_for("a")
    stage.end(first.pid)
    second = stage.wait_for("b")
    assert left(first).isdisjoint(pids(second.pid))
    assert left(first) <= pids(next(iter(left(first))))


def test_orphans_that_cannot_be_told_apart_are_not_joined(stage: Stage) -> None:
    """Two schedulers of rank 0 in one process group, no pipes: every process stands alone."""
    first, second = run_two(stage, children=(TP2, TP2))
    stage.end(first.pid)
    stage.end(second.pid)
    for pid in left(first) | left(second):
        assert pids(pid) == {pid}


def test_an_orphan_that_shares_a_pipe_with_a_live_launch_belongs_to_it(stage: Stage) -> None:
    """Double-forked into a session of its own, but with the resource_tracker's pipe still open."""
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    children = {**TP2, "tp2": {"argv": ["sglang::scheduler_TP2"], "daemon": True, "own_session": True}}
    children = {name: {**child, "inherit": [writer]} for name, child in children.items()}
    server = stage.run(stage.server("a", children), "a", pass_fds=[writer])
    other = stage.run(stage.server("b"), "b")
    os.close(reader)
    os.close(writer)
    launch = find_launch(server.children["tp2"])
    assert {p.key.pid for p in launch.processes} == server.pids
    assert pids(other.pid) == other.pids


def test_a_pipe_from_above_a_launch_makes_no_member(stage: Stage) -> None:
    """Who started the launch holds the pipe, too: an orphan that has it may be of another launch of that one."""
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    children = {**TP2, "tp2": {"argv": ["sglang::scheduler_TP2"], "daemon": True, "own_session": True}}
    children = {name: {**child, "inherit": [writer]} for name, child in children.items()}
    server = stage.run(stage.server("a", children), "a", pass_fds=[writer])
    lost = server.children["tp2"]
    try:
        assert pids(lost) == {lost}
        assert pids(server.pid) == server.pids - {lost}
    finally:
        os.close(reader)
        os.close(writer)


RANKS = {
    name: {"argv": [title], "spawn": True}
    for name, title in (("tp0", "sglang::scheduler_TP0"), ("tp1", "sglang::scheduler_TP1"))
}
RENAMED = tuple(f"driver.{server}.{rank}.renamed" for server in "ab" for rank in RANKS)


def test_a_driver_s_other_server_is_no_part_of_what_one_left(stage: Stage) -> None:
    """A living driver has spawned two servers; one is dead: its ranks are a launch, and the other server's another,
    though all of them hold the pipe to the driver's resource tracker."""
    servers = {name: {"children": RANKS} for name in "ab"}
    driver = stage.run(stage.program("driver", {n: {"spawn": True, **one} for n, one in servers.items()}), "driver")
    for name in ("driver.a", "driver.b", *RENAMED):
        stage.wait_for(name)
    first, second = stage.wait_for("driver.a"), stage.wait_for("driver.b")
    stage.end(first.pid)
    assert pids(first.children["tp0"]) == left(first)
    assert pids(second.children["tp0"]) == second.pids
    assert pids(second.pid) == second.pids
    assert driver.pid not in pids(first.children["tp1"])


def notebook(stage: Stage, children: dict[str, Any]) -> Actor:
    """A living notebook kernel that has started these engine processes."""
    shutil.copy(PATIENTS / "program.py", stage.directory / "ipykernel_launcher")
    command = stage.program("kernel", children)
    return stage.run([*command[:-2], str(stage.directory / "ipykernel_launcher")], "kernel")


def test_a_notebook_s_other_engine_is_another_launch(stage: Stage) -> None:
    """A notebook runs SGLang and vLLM: naming one's rank gives that engine's processes, neither the notebook's tracker
    nor the other engine's."""
    children = {**TP2, "core": {"argv": ["VLLM::EngineCore_0"]}, "pool": {"spawn": True}}
    kernel = notebook(stage, children)
    ours = {kernel.children[name] for name in TP2}
    assert pids(kernel.children["tp1"]) == ours
    assert pids(kernel.children["core"]) == {kernel.children["core"]}


def test_two_engines_of_a_notebook_are_not_joined(stage: Stage) -> None:
    """Two SGLang engines in one living notebook cannot be told apart: every process stands alone."""
    kernel = notebook(stage, {**TP2, "other": {"argv": ["sglang::scheduler_TP0"]}})
    for pid in kernel.children.values():
        assert pids(pid) == {pid}


def test_the_script_of_a_dead_launcher_leads_to_the_orphans(stage: Stage) -> None:
    """A script whose server died and that waits for something else still leads to what is left."""
    script = stage.script(f"exec 9< {stage.lifeline}\n{shlex.join(stage.server('a'))}\ncat <&9\n")
    server = stage.wait_for("a")
    stage.end(server.pid)
    assert pids(script.pid) >= left(server)


def test_a_dead_launcher_that_nobody_waited_for_is_the_root(stage: Stage) -> None:
    """A zombie launcher is evidence: it is the root of what it left behind."""
    argv = stage.server("a")
    pid = os.posix_spawnp(argv[0], argv, os.environ, setsid=True)
    server = stage.wait_for("a")
    stage.end(pid)
    try:
        launch = find_launch(server.children["tp1"])
        assert launch.root.pid == pid
        assert {p.key.pid for p in launch.processes} == server.pids
        assert launch.engine == "sglang"
    finally:
        os.waitpid(pid, 0)


def test_a_bystander_is_not_an_orphan(stage: Stage) -> None:
    """Somebody's own program that shares the dead launcher's process group is left out."""
    children = {**TP2, "own": {"argv": ["backup"]}}
    server = stage.run(stage.server("a", children), "a")
    stage.end(server.pid)
    assert pids(server.children["tp0"]) == left(server) - {server.children["own"]}


def test_without_a_pid_orphans_are_found(stage: Stage) -> None:
    """The user's only launch may be one whose launcher is gone."""
    server = stage.run(stage.server("a"), "a")
    stage.end(server.pid)
    launch = find_launch(proc=stage.proc_of(*left(server)))
    assert {p.key.pid for p in launch.processes} == left(server)


def test_a_pid_that_ended_is_an_error(stage: Stage, tmp_path: Path) -> None:
    """A dead launcher's own pid leads nowhere any more."""
    server = stage.run(stage.server("a"), "a")
    stage.end(server.pid)
    with pytest.raises(HangdocError, match=f"there is no process {server.pid}"):
        find_launch(server.pid)
