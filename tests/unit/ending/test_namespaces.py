"""Inside pid namespaces: reused pids, orphans without a pid given, zombies that nobody buries, a root that is pid 1."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from hangdoc.ending.namespaces import sees_everybody
from tests.conftest import NOT_TO_BE_HAD
from tests.unit.cli.commands import REPOSITORY, argv, environment
from tests.unit.ending.theatre import PATIENTS

HERE = Path(__file__).parent
ROUNDS = 200
LONGEST_S = 600.0
"""A safety net: 200 rounds take 20 s on a quiet machine."""

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None,
    reason=f"{NOT_TO_BE_HAD}a pid namespace needs root and unshare",
)

APART = 'umount /dev/shm 2>/dev/null; exec "$@"'
"""The namespace does not share the segments of launches that other tests end meanwhile, so that these are theirs."""


def inside(*command: str, folder: Path, path: Path = REPOSITORY) -> subprocess.CompletedProcess[str]:
    """Run a command as pid 1 of a pid namespace with a /proc of its own."""
    own = {"HANGDOC_TEST_FIFO": str(folder / "told"), "HANGDOC_TEST_FOLDER": str(folder)}
    return subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", *command],
        env={**environment(), **own, "PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=LONGEST_S,
        cwd=folder,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("ticks", ["real-ticks", "one-tick"])
def test_a_reused_pid_is_never_signalled(tmp_path: Path, ticks: str) -> None:
    """Over 200 rounds a member's pid goes to a bystander at the worst moments: none is signalled, each is alive; also
    when the bystander has the member's start time and title, too."""
    report = tmp_path / "report"
    program = (sys.executable, str(HERE / "reuse.py"), str(ROUNDS), str(report), ticks)
    done = inside("sh", "-c", APART, "sh", *program, folder=tmp_path)
    assert done.stdout, done.stderr
    told = json.loads(done.stdout)
    assert not report.exists(), report.read_text()
    assert told["hit"] == []
    assert told["left"] == []
    assert sum(told["exchanged"].values()) == ROUNDS


def planned(folder: Path, *more: str, contained: bool) -> subprocess.CompletedProcess[str]:
    """Plan without a pid; anew, as it advises, where an orphan of somebody else ends while it is looked at."""
    command, code = argv("kill-clean", "--dry-run", *more), 4
    while code == 4:
        if contained:
            done = inside(*command, folder=folder)
        else:
            done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
        code = done.returncode if "Try again" in done.stderr else 0
    return done


@pytest.mark.parametrize("contained", [True, False])
def test_lines_that_remove_carry_what_is_not_visible(tmp_path: Path, contained: bool) -> None:
    """In a pid namespace the rm lines come with the caveat, in text and document; where all is visible without."""
    if not contained and not sees_everybody(Path("/proc")):
        pytest.skip(f"{NOT_TO_BE_HAD}the first pid namespace")
    stray = Path(f"/dev/shm/psm_{uuid.uuid4().hex[:8]}")
    stray.touch()
    try:
        for more in (), ("--json",):
            done = planned(tmp_path, *more, contained=contained)
            assert "rm -- /dev/shm/" in done.stdout, done.stderr  # of many files, the text names the first
            assert ("look from the host before rm" in " ".join(done.stdout.split())) == contained
        document = json.loads(done.stdout)
        assert f"rm -- {stray}" in {one["command"] for one in document["leftovers"]}
        assert (document["caveat"] is not None) == contained
    finally:
        stray.unlink()


STAGE = """
import json, os, subprocess, sys
commands, act, names = json.loads(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
fifo = os.environ["HANGDOC_TEST_FIFO"]
os.mkfifo(fifo)
heard = os.open(fifo, os.O_RDWR)
os.environ["HANGDOC_TEST_ACT"] = act
launcher = subprocess.Popen([sys.executable, "-S", "-m", "sglang.launch_server"], start_new_session=True)
told = {}
buffer = b""
while not set(names) <= set(told):
    buffer += os.read(heard, 1024)
    *lines, buffer = buffer.split(b"\\n")
    told.update((line.split()[0].decode(), int(line.split()[1])) for line in lines)
if "--orphan" in sys.argv:
    launcher.kill()
    launcher.wait()
results = []
for command in commands:
    words = [str(told[word]) if word in told else word for word in command]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    results.append({"code": done.returncode, "out": done.stdout, "err": done.stderr})
states = {}
for name, pid in told.items():
    try:
        states[name] = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        states[name] = ""
print(json.dumps({"results": results, "states": states, "told": told}))
"""
"""Pid 1 of the namespace: starts a launch, runs hangdoc beside it, and buries nobody but what it started itself."""


def staged(tmp_path: Path, act: str, names: tuple[str, ...], *commands: tuple[str, ...], orphan: bool = False) -> Any:
    lines = json.dumps([argv(*command) for command in commands])
    program = [sys.executable, "-S", "-c", STAGE, lines, act, json.dumps(names), *(["--orphan"] if orphan else [])]
    done = inside(*program, folder=tmp_path, path=PATIENTS)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_orphans_are_ended_without_a_pid(tmp_path: Path) -> None:
    """Without a pid: the launcher is dead, its schedulers were re-parented to a pid 1 that does not bury; they end,
    and as zombies they count as gone."""
    told = staged(
        tmp_path,
        "plain",
        ("launcher", "rank0", "rank1"),
        ("kill-clean", "--dry-run", "--json"),
        ("kill-clean", "--yes", "--no-snapshot", "--json"),
        ("kill-clean", "--yes", "--json"),
        orphan=True,
    )
    plan, end, again = told["results"]
    members = {one["pid"] for launch in json.loads(plan["out"])["launches"] for one in launch["members"]}
    assert members == {told["told"]["rank0"], told["told"]["rank1"]}
    assert end["code"] == 0, end
    assert {told["states"]["rank0"], told["states"]["rank1"]} == {"Z"}
    assert (again["code"], json.loads(again["out"])["launches"]) == (0, [])


def test_a_live_launch_is_never_taken_for_orphans(tmp_path: Path) -> None:
    """Without a pid a launch whose launcher lives is not offered, and nothing is touched."""
    told = staged(tmp_path, "plain", ("launcher", "rank0", "rank1"), ("kill-clean", "--yes", "--json"))
    result = told["results"][0]
    assert (result["code"], json.loads(result["out"])["launches"]) == (0, [])
    assert "Z" not in told["states"].values()
    assert "" not in told["states"].values()


def test_a_member_that_was_re_parented_to_pid_1_is_found(tmp_path: Path) -> None:
    """In a container a double-forked member is a child of pid 1: it is found and gone, zombies included."""
    names = ("launcher", "lost", "rank0")
    told = staged(tmp_path, "double_forked", names, ("kill-clean", "rank0", "--yes", "--no-snapshot", "--json"))
    assert told["results"][0]["code"] == 0, told["results"][0]
    assert set(told["states"].values()) <= {"Z", ""}


ROOT_IS_PID_1 = """
import os, subprocess, sys
os.environ["HANGDOC_TEST_ACT"] = "with_a_caller"
os.execv(sys.executable, [sys.executable, "-m", "sglang.launch_server"])
"""


def test_a_root_that_is_pid_1_is_refused(tmp_path: Path) -> None:
    """The launcher is pid 1 of the namespace: exit 2 before any signal, with the command for the host."""
    os.mkfifo(tmp_path / "told")
    heard = os.open(tmp_path / "told", os.O_RDWR)
    command = json.dumps(argv("kill-clean", "RANK", "--yes", "--no-snapshot"))
    (tmp_path / "command").write_text(command)
    done = inside(sys.executable, "-S", "-c", ROOT_IS_PID_1, folder=tmp_path, path=PATIENTS)
    os.close(heard)
    told = json.loads(done.stdout)
    assert told["code"] == 2, told
    assert "pid 1 of this container" in told["err"]
    assert "docker kill" in told["err"]
    assert told["states"] == ["S", "S"]
