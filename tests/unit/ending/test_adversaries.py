"""Launches that are hard to end are ended whole, and whoever only resembles them lives on."""

from __future__ import annotations

import json
import os
import select
import shlex
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hangdoc.model.process import ProcessKey
from tests.conftest import NOT_TO_BE_HAD
from tests.unit.cli.commands import wait_until
from tests.unit.ending.theatre import ENTER, LOST, PATIENTS, STAYS, Theatre, lives

FAST = ("--yes", "--no-snapshot", "--json")


def end(theatre: Theatre, key: ProcessKey, *arguments: str) -> tuple[int, dict[str, Any]]:
    ended = theatre.kill_clean(str(key.pid), *FAST, *arguments)
    assert ended.out, ended.err
    return ended.code, json.loads(ended.out)["launches"][0]


@pytest.mark.parametrize(
    ("act", "names"),
    [
        ("plain", ("rank0", "rank1")),
        ("ignores_sigterm", ("rank0", "rank1")),
        ("stopped", ("rank0", "stopped")),
        ("zombie", ("dead", "rank1")),
        ("double_forked", ("lost", "rank0")),
        ("private_pipe", ("helper", "rank0")),
        ("other_session", ("rank0", "rank1")),
    ],
)
def test_every_member_is_gone(theatre: Theatre, act: str, names: tuple[str, ...]) -> None:
    """Whatever the members do against it, each is gone, the exit code says so, and a bystander lives."""
    bystander = theatre.bystander()
    cast = theatre.launch(act, *names)
    code, launch = end(theatre, cast[names[-1]] if act != "zombie" else cast["launcher"])
    assert code == 0, launch
    assert [name for name, key in cast.items() if lives(key)] == []
    assert lives(bystander)
    assert theatre.left() == {bystander.pid}


def test_members_of_another_pid_namespace_are_gone(theatre: Theatre) -> None:
    """A rank below a pid namespace of its own is a member like any other."""
    if os.geteuid() != 0:
        pytest.skip(f"{NOT_TO_BE_HAD}a pid namespace needs root")
    bystander = theatre.bystander()
    cast = theatre.launch("other_namespace", "rank0", "rank1")
    code, launch = end(theatre, cast["rank0"])
    assert code == 0, launch
    assert theatre.left() == {bystander.pid}


def test_each_member_says_why_it_belongs(theatre: Theatre) -> None:
    """The reasons in the plan are those that hold: a fork by its memory, a helper by a pipe, a child by its parent."""
    cast = theatre.launch("double_forked", "lost", "rank0")
    ended = theatre.kill_clean(str(cast["rank0"].pid), "--dry-run", "--json")
    members = {one["pid"]: one["because"] for one in json.loads(ended.out)["launches"][0]["members"]}
    assert members[cast["launcher"].pid] == ["the launcher"]
    assert members[cast["rank0"].pid] == [f"child of {cast['launcher'].pid}"]
    assert members[cast["lost"].pid] == [f"a fork of {cast['launcher'].pid}, its parent gone"]


@pytest.mark.slow
@pytest.mark.parametrize("act", ["multiplies", "relay", "revive_each_other"])
def test_members_that_multiply_are_gone(theatre: Theatre, act: str) -> None:
    """Ranks that fork while they are killed, that hand over to a child, or that start each other anew: all are gone."""
    bystander = theatre.bystander()
    names = {"multiplies": ("rank0", "rank1"), "relay": (), "revive_each_other": ("rank0", "rank1")}[act]
    cast = theatre.launch(act, *names)
    code, launch = end(theatre, cast["launcher"])
    assert code == 0, launch
    wait_until(lambda: theatre.group_is_empty(cast["launcher"]))
    assert theatre.left() == {bystander.pid}


@pytest.mark.slow
@pytest.mark.parametrize("act", ["relay_apart", "relay_untitled"])
def test_who_cannot_be_held_is_never_called_gone(theatre: Theatre, act: str) -> None:
    """A relay through sessions of its own is caught, or the report says that somebody is left: never wrongly gone."""
    cast = theatre.launch(act)
    code, launch = end(theatre, cast["launcher"])
    at = theatre.folder / "at"
    is_gone = stands_still(at)
    while not stands_still(at):  # the test's own end of it
        for _ in range(1000):
            with suppress(ProcessLookupError, ValueError):
                os.kill(int(at.read_text()), signal.SIGKILL)
    assert (code == 0) == is_gone, launch
    assert launch["done"]["restless"] or is_gone


@pytest.mark.parametrize("act", ["relay_slowly", "relay_by_exec", "relay_in_group"])
def test_who_hands_over_slowly_is_seen(theatre: Theatre, act: str) -> None:
    """A relay that hands over every 30 ms ends, or is told with exit 1: it slipped between the looks before."""
    with (theatre.folder / "log").open("w") as log:
        cast = theatre.launch(act, stdout=log, stderr=log)
    code, launch = end(theatre, cast["launcher"])
    is_gone = stands_still(theatre.folder / "at")
    (theatre.folder / "stop").touch()
    wait_until(lambda: theatre.left() == set())
    assert code == (0 if is_gone else 1), json.dumps(launch["done"]) + json.dumps(launch["after"])


def stands_still(file: Path) -> bool:
    """Nobody writes into a file for as long as a hundred relays take."""
    before = file.stat().st_mtime_ns
    select.select([], [], [], 0.5)
    return file.stat().st_mtime_ns == before


def test_a_script_that_starts_the_launch_again_ends_with_it(theatre: Theatre) -> None:
    """`while true; do server; done` in a script that exists for nothing else is of the launch."""
    script = theatre.folder / "run.sh"
    script.write_text(f"while true; do\n{shlex.join(theatre.server())}\ndone\n")
    theatre.start(["bash", str(script)])
    cast = theatre.wait_for("launcher", "rank0", "rank1")
    code, launch = end(theatre, cast["rank0"])
    assert code == 0, launch
    assert theatre.left() == set()


@pytest.mark.parametrize("way", ["inline", "file", "deleted"])
def test_a_script_that_may_start_the_launch_again_is_not_finished(theatre: Theatre, way: str) -> None:
    """A loop that sleeps before it starts the launch again looks like a script that went on: that the launch may come
    back is told, with what ends the script, and the code is 1; so where the script cannot be read."""
    text = f"while true; do {shlex.join(theatre.server())}; sleep 1000; done\n"
    script = theatre.folder / "again.sh"
    script.write_text(text)
    job = theatre.start(["bash", "-c", text] if way == "inline" else ["bash", str(script)])
    cast = theatre.wait_for("launcher", "rank0", "rank1")
    if way == "deleted":
        script.unlink()
    code, launch = end(theatre, cast["rank0"])
    assert code == 1, launch
    told = {one["pid"]: one["because"] for one in launch["done"]["going_on"]}
    assert ("is not known" if way == "deleted" else "may come back") in told[job.pid]
    assert f"kill {job.pid}" in told[job.pid]


def test_a_script_that_goes_on_to_something_else_is_left(theatre: Theatre) -> None:
    """A job script that runs the user's own program after the server is not ended, and that is said."""
    script = theatre.folder / "job.sh"
    own = "import os; import acts; acts.tell('own'); acts.stay()"
    script.write_text(f"{shlex.join(theatre.server())}\n{shlex.join([sys.executable, '-S', '-c', own])}\n")
    job = theatre.start(["bash", str(script)])
    cast = theatre.wait_for("launcher", "rank0", "rank1")
    code, launch = end(theatre, cast["rank0"])
    theatre.wait_for("own")
    assert code == 0, launch
    assert [one["pid"] for one in launch["done"]["going_on"]] == [job.pid]
    assert [name for name in ("launcher", "rank0", "rank1") if lives(cast[name])] == []
    assert job.pid in theatre.left()
    assert theatre.cast["own"].pid in theatre.left()


@pytest.mark.parametrize("after", ["sleep 1000", "sleep 1000; true"])
@pytest.mark.parametrize("outer", [(), ("timeout", "1000")])
def test_a_script_that_sleeps_after_the_launch_is_left_and_told(
    theatre: Theatre, outer: tuple[str, ...], after: str
) -> None:
    """`bash -c "server; sleep 1000"`: script and sleep go on, with what waits for them; all are told."""
    script = f"{shlex.join(theatre.server())}; {after}"
    job = theatre.start([*outer, "bash", "-c", script])
    cast = theatre.wait_for("launcher", "rank0", "rank1")
    ended = theatre.kill_clean(str(cast["rank0"].pid), "--yes", "--no-snapshot")
    left = theatre.left()
    assert ended.code == 0, ended.out
    assert "nothing is left" not in ended.out
    assert "sleep 1000 (pid" in " ".join(ended.out.split())
    assert f"kill {job.pid}" in ended.out
    assert job.pid in left
    assert len(left) == 1 + ("true" in after) + bool(outer)  # the last command of bash -c takes bash's place


SUPERVISOR = "import subprocess, sys\nwhile True: subprocess.run(sys.argv[1:])"


@pytest.mark.slow
def test_what_a_supervisor_starts_again_is_told(theatre: Theatre) -> None:
    """A supervisor is named with what stops it, never ended; what it starts again is reported with exit code 1."""
    supervisor = theatre.start([sys.executable, "-S", "-c", SUPERVISOR, *theatre.server()])
    cast = theatre.wait_for("launcher", "rank0", "rank1")
    code, launch = end(theatre, cast["rank0"])
    assert code == 1
    assert [one["pid"] for one in launch["supervisors"]] == [supervisor.pid]
    assert launch["supervisors"][0]["command"] is None
    assert [one["because"] for one in launch["after"]["returned"]] == [
        f"started again by {supervisor.pid} (to end it, first: kill {supervisor.pid})"
    ]
    assert supervisor.poll() is None
    assert not lives(cast["rank0"])


def test_a_sibling_launch_of_the_same_script_lives(theatre: Theatre) -> None:
    """Two launches of one shell script: ending one leaves the other, the script, and the user's own program."""
    first = shlex.join(theatre.server())
    own = shlex.join([sys.executable, "-S", "-c", "import acts; acts.tell('own'); acts.stay()", "sglang.launch_server"])
    second = f"HANGDOC_TEST_ACT=other_session {shlex.join(theatre.server())}"
    script = theatre.folder / "two.sh"
    script.write_text(f"{own} &\n{first} &\nread line < {theatre.fifo}.go\n{second} &\nwait\n")
    os.mkfifo(f"{theatre.fifo}.go")
    job = theatre.start(["bash", str(script)])
    cast = theatre.wait_for("own", "launcher", "rank0", "rank1")
    theatre.forget("launcher", "rank0", "rank1")
    Path(f"{theatre.fifo}.go").write_text("\n")
    other = theatre.wait_for("launcher", "rank0", "rank1")
    _, launch = end(theatre, cast["launcher"])
    assert [name for name in ("launcher", "rank0", "rank1") if lives(cast[name])] == []
    assert [name for name, key in other.items() if not lives(key)] == []
    assert job.poll() is None
    told = {one["pid"]: one["because"] for one in launch["look_alikes"]}
    assert told[other["launcher"].pid] == "of another sglang launch, its root"
    assert set(told) >= {job.pid, cast["own"].pid, *(key.pid for key in other.values())}


def test_what_is_in_doubt_is_left_unless_included(theatre: Theatre) -> None:
    """An adopted program that shares what the launch may have inherited is left and shown; --include ends it, too."""
    reader, writer = os.pipe()
    cast = theatre.launch("plain", "rank0", "rank1", pass_fds=(writer,))
    daemon = "import os\nif os.fork(): os._exit(0)\nos.setsid()\nimport acts; acts.tell('adopted'); acts.stay()"
    theatre.start([sys.executable, "-S", "-c", daemon], pass_fds=(writer,))
    adopted = theatre.wait_for("adopted")["adopted"]
    os.close(reader)
    os.close(writer)
    shown = json.loads(theatre.kill_clean(str(cast["rank0"].pid), "--dry-run", "--json").out)["launches"][0]
    doubts = {one["pid"] for one in shown["look_alikes"] if one["in_doubt"]}
    assert doubts == {adopted.pid}
    assert adopted.pid not in {one["pid"] for one in shown["members"]}
    code, launch = end(theatre, cast["rank0"], "--include", str(adopted.pid))
    assert code == 0, launch
    assert theatre.left() == set()


def test_a_connected_scheduler_of_another_launch_is_in_doubt(theatre: Theatre) -> None:
    """Two launches joined by a socket, as where one prefills for the other: the other's rank, its launcher dead, is
    left and shown with the reason, and the code says that somebody may be left."""
    cast = theatre.launch("answers", "rank0")
    theatre.forget("launcher", "rank0")
    theatre.start([*theatre.server(), "--decode"], act="connects")
    other = theatre.wait_for("launcher", "rank0")
    os.kill(other["launcher"].pid, signal.SIGKILL)
    theatre.bury(other["launcher"].pid)
    plan = json.loads(theatre.kill_clean(str(cast["launcher"].pid), "--dry-run", "--json").out)["launches"][0]
    doubts = {one["pid"]: one["because"] for one in plan["look_alikes"] if one["in_doubt"]}
    assert "connected to member" in doubts[other["rank0"].pid]
    code, launch = end(theatre, cast["launcher"])
    assert code == 1, launch
    assert [one["pid"] for one in launch["after"]["doubtful"]] == [other["rank0"].pid]
    assert theatre.left() == {other["rank0"].pid}


def test_the_marker_of_a_launch_finds_what_lost_every_other_tie(theatre: Theatre) -> None:
    """A program executed into a session of its own, its parent gone, belongs when it carries the launch's marker."""
    lost = "import os\nif os.fork(): os._exit(0)\nos.setsid()\nimport acts; acts.tell('lost'); acts.stay()"
    os.environ["HANGDOC_LAUNCH"] = theatre.token
    try:
        cast = theatre.launch("plain", "rank0", "rank1")
        theatre.start([sys.executable, "-S", "-c", lost])
        stray = theatre.wait_for("lost")["lost"]
    finally:
        del os.environ["HANGDOC_LAUNCH"]
    code, launch = end(theatre, cast["rank0"])
    assert code == 0, launch
    assert {one["pid"]: one["because"] for one in launch["members"]}[stray.pid] == ["carries the marker of this launch"]
    assert theatre.left() == set()


HARNESS = "import subprocess, sys; subprocess.run(sys.argv[1:]); import acts; acts.tell('after'); acts.stay()"


def test_what_started_a_program_of_no_engine_lives(theatre: Theatre) -> None:
    """mpirun or a harness of the user's own is never taken down with its program, found from a part of that."""
    program = [sys.executable, "-S", str(PATIENTS / "acts.py"), "unknown"]
    harness = theatre.start([sys.executable, "-S", "-c", HARNESS, *program])
    cast = theatre.wait_for("program", "part")
    code, launch = end(theatre, cast["part"])
    theatre.wait_for("after")
    assert code == 0, launch
    assert {one["pid"] for one in launch["members"]} == {cast["program"].pid, cast["part"].pid}
    assert [name for name, key in cast.items() if lives(key)] == []
    assert harness.poll() is None
    assert harness.pid in {one["pid"] for one in launch["look_alikes"]}


FREEZER = Path("/sys/fs/cgroup/freezer")


@pytest.mark.slow
def test_a_member_in_the_kernels_hands_is_reported(theatre: Theatre) -> None:
    """A member that SIGKILL does not reach (state D) is reported with its wait channel, and not waited for for ever."""
    folder = FREEZER / f"hangdoc-{theatre.token}"
    try:
        folder.mkdir()
    except OSError:
        pytest.skip(f"{NOT_TO_BE_HAD}no version 1 freezer that may be used")
    cast = theatre.launch("plain", "rank0", "rank1")
    try:
        (folder / "tasks").write_text(str(cast["rank1"].pid))
        (folder / "freezer.state").write_text("FROZEN")
        while (folder / "freezer.state").read_text().strip() != "FROZEN":
            pass
        code, launch = end(theatre, cast["rank0"])
        assert code == 1
        assert [(one["pid"], one["state"]) for one in launch["done"]["survivors"]] == [(cast["rank1"].pid, "D")]
        assert launch["done"]["survivors"][0]["waits_in"]
        assert f"its control group /{folder.name} is frozen" in launch["done"]["survivors"][0]["because"]
        assert not lives(cast["rank0"])
    finally:
        (folder / "freezer.state").write_text("THAWED")
        while (folder / "tasks").read_text():
            pass
        folder.rmdir()
    assert not lives(cast["rank1"])


def test_a_control_group_of_its_own_finds_everybody(theatre: Theatre, control_group: Path) -> None:
    """A launch in a control group of its own: who is in it, too, and writes its log, is found by that."""
    enter = ["sh", "-c", ENTER, str(control_group)]
    with (theatre.folder / "log").open("w") as log:
        theatre.start([*enter, *theatre.server()], stdout=log)
        cast = theatre.wait_for("launcher", "rank0", "rank1")
        theatre.start([*enter, sys.executable, "-S", "-c", LOST], stdout=log)
    stray = theatre.wait_for("lost")["lost"]
    bystander = theatre.bystander()
    code, launch = end(theatre, cast["rank0"])
    assert code == 0, launch
    reasons = {one["pid"]: one["because"] for one in launch["members"]}
    assert reasons[stray.pid][0].startswith("in the launch's control group, in which there is nobody else, and writes")
    assert theatre.left() == {bystander.pid}


@pytest.mark.slow
def test_members_that_multiply_are_killed_by_their_control_group(theatre: Theatre, control_group: Path) -> None:
    """Where a control group holds members only, cgroup.kill ends those that multiply, at once."""
    theatre.start(["sh", "-c", ENTER, str(control_group), *theatre.server()], act="multiplies")
    cast = theatre.wait_for("launcher", "rank0", "rank1")
    code, launch = end(theatre, cast["rank0"])
    assert code == 0, launch
    # On a full machine they may all be dead before one of them has started another.
    at_once = "they multiply: cgroup.kill, their control group holds nobody else" in launch["done"]["steps"]
    assert at_once or not launch["done"]["joined"], launch["done"]
    assert theatre.left() == set()


@pytest.mark.slow
def test_a_control_group_with_a_bystander_is_not_killed_whole(theatre: Theatre, control_group: Path) -> None:
    """With somebody else in the launch's control group the members end one by one, and he lives."""
    enter = ["sh", "-c", ENTER, str(control_group)]
    theatre.start([*enter, *theatre.server()], act="multiplies")
    cast = theatre.wait_for("launcher", "rank0", "rank1")
    harness = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    theatre.start([sys.executable, "-S", "-c", harness, *enter, sys.executable, "-S", "-c", STAYS])
    own = theatre.wait_for("own")["own"]
    code, launch = end(theatre, cast["rank0"])
    assert code == 0, launch
    assert not [step for step in launch["done"]["steps"] if "cgroup.kill" in step]
    assert lives(own)
