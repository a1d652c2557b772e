"""What a launch shares with others proves nothing, and what it left to a subreaper or on its port is not missed."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hangdoc.model.process import ProcessKey
from tests.unit.ending.theatre import ENTER, LOST, STAYS, Theatre, lives

FAST = ("--yes", "--no-snapshot", "--json")


def end(theatre: Theatre, key: ProcessKey, *arguments: str) -> tuple[int, dict[str, Any]]:
    ended = theatre.kill_clean(str(key.pid), *FAST, *arguments)
    assert ended.out, ended.err
    return ended.code, json.loads(ended.out)["launches"][0]


def doubts(launch: dict[str, Any]) -> dict[int, str]:
    return {one["pid"]: one["because"] for one in launch["look_alikes"] if one["in_doubt"]}


def test_a_bystander_of_the_same_login_lives(theatre: Theatre, control_group: Path) -> None:
    """Server and trainer were left behind in one login's control group, both adopted by pid 1: the trainer lives."""
    own = shlex.join([sys.executable, "-S", "-c", STAYS])
    login = f"echo $$ > {control_group}/cgroup.procs; set -m; {shlex.join(theatre.server())} & {own} & exit 0"
    theatre.start(["bash", "-c", login], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).wait()
    cast = theatre.wait_for("launcher", "rank0", "rank1", "own")
    code, launch = end(theatre, cast["launcher"])
    assert lives(cast["own"]), launch
    assert code == 0, launch
    assert [one["pid"] for one in launch["after"]["doubtful"]] == [cast["own"].pid]
    assert "control group" in doubts(launch)[cast["own"].pid]
    assert theatre.left() == {cast["own"].pid}


def test_a_control_group_alone_proves_nothing(theatre: Theatre, control_group: Path) -> None:
    """One program without a parent that has nothing but the launch's control group in common may have been put there:
    it lives and is shown, and as it may as well be of the launch, the code is 1."""
    enter = ["sh", "-c", ENTER, str(control_group)]
    theatre.start([*enter, *theatre.server()])
    cast = theatre.wait_for("launcher", "rank0", "rank1")
    theatre.start([*enter, sys.executable, "-S", "-c", LOST], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    lost = theatre.wait_for("lost")["lost"]
    code, launch = end(theatre, cast["launcher"])
    assert lives(lost), launch
    assert code == 1, launch
    assert "control group" in doubts(launch)[lost.pid]
    assert theatre.left() == {lost.pid}


def test_a_control_group_that_others_are_in_proves_nothing(theatre: Theatre, control_group: Path) -> None:
    """Somebody who lost every other tie is left and shown when a program of its own is in the launch's group, too."""
    enter = ["sh", "-c", ENTER, str(control_group)]
    harness = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    theatre.start([*enter, *theatre.server()])
    cast = theatre.wait_for("launcher", "rank0", "rank1")
    theatre.start([sys.executable, "-S", "-c", harness, *enter, sys.executable, "-S", "-c", STAYS])
    theatre.start([*enter, sys.executable, "-S", "-c", LOST], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    cast = theatre.wait_for("own", "lost")
    _, launch = end(theatre, cast["launcher"])
    assert lives(cast["lost"]), launch
    assert lives(cast["own"])
    assert "control group" in doubts(launch)[cast["lost"].pid]


def test_a_marker_of_two_launches_proves_nothing(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two launches that one command started have one marker: a worker that one of them lost outlives the other."""
    monkeypatch.setenv("HANGDOC_LAUNCH", theatre.token)
    first = theatre.launch("plain", "rank0", "rank1")
    theatre.forget("launcher", "rank0", "rank1")
    second = theatre.launch("plain", "rank0", "rank1")
    theatre.start([sys.executable, "-S", "-c", LOST], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    lost = theatre.wait_for("lost")["lost"]
    _, launch = end(theatre, first["launcher"])
    assert lives(lost), launch
    assert lives(second["rank0"])
    assert "marker" in doubts(launch)[lost.pid]


SUBREAPER = """import ctypes, os, signal, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
subprocess.Popen(sys.argv[1:], start_new_session=True)
while True:
    try: os.wait()
    except ChildProcessError: signal.pause()
"""


def test_a_shared_marker_proves_nothing_below_a_subreaper_either(theatre: Theatre) -> None:
    """Who shares only a marker that others have, too, is shown and does not count, whoever adopted him."""
    own, lost = (shlex.join([sys.executable, "-S", "-c", one]) for one in (STAYS, LOST))
    script = f"export HANGDOC_LAUNCH={theatre.token}; {shlex.join(theatre.server())} & {own} & {lost} & wait"
    null = subprocess.DEVNULL
    theatre.start([sys.executable, "-S", "-c", SUBREAPER, "bash", "-c", script], stdout=null, stderr=null)
    cast = theatre.wait_for("launcher", "rank0", "rank1", "own", "lost")
    code, launch = end(theatre, cast["launcher"])
    assert {"own", "lost"} <= {name for name, key in cast.items() if lives(key)}, launch
    assert "marker" in doubts(launch)[cast["lost"].pid]
    assert code == 0, launch


def test_a_script_with_a_loop_and_other_programs_is_named(theatre: Theatre) -> None:
    """A script that runs other programs, too, is never ended; that it loops is said, and what ends it."""
    own = shlex.join([sys.executable, "-S", "-c", STAYS])
    script = f"set -m; {shlex.join(theatre.server())} & {own} & while true; do sleep 1; done"
    bash = theatre.start(["bash", "-c", script])
    cast = theatre.wait_for("launcher", "rank0", "rank1", "own")
    planned = json.loads(theatre.kill_clean(str(cast["launcher"].pid), "--dry-run", "--json").out)["launches"][0]
    assert [(one["pid"], one["command"]) for one in planned["supervisors"]] == [(bash.pid, f"kill {bash.pid}")]
    assert bash.pid not in {one["pid"] for one in planned["members"]}


def test_a_program_of_supervisord_is_named_as_supervisord_calls_it(theatre: Theatre) -> None:
    """supervisord tells its children their name: the command that stops the launch for good is complete with it."""
    (theatre.folder / "supervisord").write_text(SUBREAPER)
    names = ["env", "SUPERVISOR_GROUP_NAME=llm", "SUPERVISOR_PROCESS_NAME=llm_0"]
    above = theatre.start([sys.executable, "-S", str(theatre.folder / "supervisord"), *names, *theatre.server()])
    cast = theatre.wait_for("launcher", "rank0", "rank1")
    planned = json.loads(theatre.kill_clean(str(cast["rank0"].pid), "--dry-run", "--json").out)["launches"][0]
    assert [(one["pid"], one["name"], one["command"]) for one in planned["supervisors"]] == [
        (above.pid, "supervisord", "supervisorctl stop llm:llm_0")
    ]


def test_a_fork_that_a_subreaper_adopted_is_a_member(theatre: Theatre) -> None:
    """Under a subreaper (tini -s, systemd --user, slurmstepd) a lost fork has a parent, and is found all the same."""
    above = theatre.start([sys.executable, "-S", "-c", SUBREAPER, *theatre.server()], act="double_forked")
    cast = theatre.wait_for("launcher", "lost", "rank0")
    code, launch = end(theatre, cast["rank0"])
    assert code == 0, launch
    assert theatre.left() == {above.pid}


def test_a_fork_of_a_dead_launcher_that_has_its_port_is_shown(theatre: Theatre) -> None:
    """Nobody can say any more that it is of the launch, but it has the port: it is left, shown with it, and exit 1."""
    null = subprocess.DEVNULL
    cast = theatre.launch("leaves_a_listener", "rank0", "lost", stdout=null, stderr=null)
    os.kill(cast["launcher"].pid, signal.SIGKILL)
    theatre.bury(cast["launcher"].pid)
    code, launch = end(theatre, cast["rank0"])
    assert code == 1, launch
    assert f"listens on port {theatre.port}" in doubts(launch)[cast["lost"].pid]
    assert theatre.left() == {cast["lost"].pid}


def test_the_headline_counts_who_is_in_doubt(theatre: Theatre) -> None:
    """What writes to the launch's log may be of it: it is never said that nothing is left, and the code is 1."""
    with (theatre.folder / "log").open("w") as log:
        cast = theatre.launch("plain", "rank0", "rank1", stdout=log, stderr=log)
        theatre.start([sys.executable, "-S", "-c", LOST], stdout=log, stderr=log)
    lost = theatre.wait_for("lost")["lost"]
    ended = theatre.kill_clean(str(cast["launcher"].pid), "--yes", "--no-snapshot")
    assert ended.code == 1, ended.out
    assert "1 in doubt left alive" in " ".join(ended.out.split())
    assert "nothing is left" not in ended.out
    assert theatre.left() == {lost.pid}
