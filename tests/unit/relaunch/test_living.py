"""A launch that runs is ended and started again as it was."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from hangdoc.launch.marker import VARIABLE
from hangdoc.relaunch.living import parse_environment
from tests.unit.ending.theatre import lives
from tests.unit.relaunch.stage import Stage


def variables(pid: int) -> dict[str, str]:
    return parse_environment(Path(f"/proc/{pid}/environ").read_bytes())


def test_it_is_ended_and_ready_again_on_its_port(stage: Stage) -> None:
    """The old one is gone, a new one with the same command is ready, in a session of its own; exit 0 and it stays."""
    cast = stage.launch("ready", "rank")
    ended = stage.relaunch(str(cast["rank"].pid), "--yes", "--log", "new.log")
    assert ended.code == 0, ended.err
    assert not any(map(lives, cast.values()))
    (new,) = stage.servers()
    assert stage.servers()[new] == tuple(stage.server())
    assert os.getsid(new) == new
    assert ended.out.splitlines()[-1] == f"READY  process {new} on port {stage.port}; output in {stage.folder}/new.log"
    assert "ready to roll" in (stage.folder / "new.log").read_text()
    assert "max_total_num_tokens" in ended.err
    assert f"hangdoc kill-clean {new}" in ended.err


def test_directory_environment_and_limits_are_the_old_ones(stage: Stage) -> None:
    """Also those that hangdoc itself has otherwise; the marker is the only variable that comes in addition."""
    there = stage.folder / "there"
    there.mkdir()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)

    def confine() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (333, before[1]))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    old = stage.start(stage.server(), "ready", cwd=there, preexec_fn=confine)
    stage.wait_for("launcher")
    was = variables(old.pid)
    ended = stage.relaunch(str(old.pid), "--yes", "--json", ONLY_HERE="1")
    assert ended.code == 0, ended.err
    new = ended.document["started"]["pid"]
    assert variables(new) == was
    assert f"{VARIABLE}={ended.document['started']['marker']}".encode() in Path(f"/proc/{new}/environ").read_bytes()
    assert Path(f"/proc/{new}/cwd").readlink() == there
    assert resource.prlimit(new, resource.RLIMIT_NOFILE) == (333, before[1])
    assert resource.prlimit(new, resource.RLIMIT_CORE) == (0, 0)
    assert ended.document["command"]["limits"]["RLIMIT_NOFILE"] == [333, before[1]]


def test_one_that_hangs_is_diagnosed_and_stays(stage: Stage) -> None:
    """Exit 1 with the diagnosis, not a wait for a timeout; the server is left for who wants to look at it."""
    cast = stage.launch("ready", "rank")
    ended = stage.relaunch(str(cast["launcher"].pid), "--yes", "--json", "--set", "HANGDOC_TEST_ACT=hung")
    assert ended.code == 1, ended.err
    document = ended.document
    assert (document["end"], document["diagnosis"]["verdict"], document["exit_code"]) == ("hang", "busy-wait", 1)
    assert document["started"]["pid"] in stage.servers()
    assert document["ended_again"] is None


def test_one_that_hangs_is_ended_when_that_is_wished(stage: Stage) -> None:
    """--kill-on-hang: the report comes, and nothing is left of the new launch."""
    cast = stage.launch("ready", "rank")
    ended = stage.relaunch(
        str(cast["launcher"].pid), "--yes", "--kill-on-hang", "--set", "HANGDOC_TEST_ACT=hung", "--log", "a.log"
    )
    assert ended.code == 1, ended.err
    assert ended.out.count("BUSY-WAIT") == 1
    assert "2 of 2 processes ended" in ended.err.rpartition("busy-wait")[2]  # its rank would outlive it
    assert stage.left() == set()


def test_one_that_dies_at_once_is_a_crash(stage: Stage) -> None:
    """Exit 1 with its exit code and last words, less the secrets in them."""
    cast = stage.launch("ready", "rank")
    ended = stage.relaunch(
        str(cast["launcher"].pid), "--yes", "--set", "HANGDOC_TEST_ACT=dies", "--set", "MY_API_KEY=hush-hush"
    )
    assert ended.code == 1, ended.err
    assert "exit code 3" in ended.err
    assert "no weights" in ended.err
    assert "hush-hush" not in ended.out + ended.err
    assert stage.left() == set()


def test_a_script_is_left_out_and_the_engine_started_again(stage: Stage) -> None:
    """`bash run.sh` above the engine ends with it; what is started again is the engine, in its environment."""
    script = stage.folder / "run.sh"
    script.write_text(f"export FROM_SCRIPT=yes\n{' '.join(stage.server())}\ntrue\n")
    stage.start(["bash", str(script)], "ready")
    cast = stage.wait_for("launcher", "rank")
    ended = stage.relaunch(str(cast["launcher"].pid), "--yes")
    assert ended.code == 0, ended.err
    (new,) = stage.servers()
    assert variables(new)["FROM_SCRIPT"] == "yes"
    assert "(bash), which is left out" in " ".join(ended.out.split())
