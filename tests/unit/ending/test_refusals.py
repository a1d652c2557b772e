"""What kill-clean refuses, and that it has touched nothing then."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import NOT_TO_BE_HAD
from tests.unit.cli.commands import LONGEST_S, argv, complaint, environment
from tests.unit.ending.theatre import PATIENTS, Theatre, lives

NOBODY = 65534


def test_without_a_terminal_it_needs_a_word(theatre: Theatre) -> None:
    """Nobody can be asked: exit 2, and nothing was touched."""
    cast = theatre.launch("plain", "rank0", "rank1")
    ended = theatre.kill_clean(str(cast["rank0"].pid))
    assert ended.code == 2
    assert "--yes" in ended.err
    assert all(lives(key) for key in cast.values())
    assert list(theatre.folder.glob("*.hangtrace")) == []


def test_a_dry_run_touches_nothing(theatre: Theatre) -> None:
    """The plan is printed, exit 0; everybody lives, no file was written or removed."""
    cast = theatre.launch("belongings", "rank0")
    before = sorted(path.name for path in Path("/dev/shm").glob(f"*{theatre.segment}*"))
    ended = theatre.kill_clean(str(cast["rank0"].pid), "--dry-run")
    assert ended.code == 0, ended.err
    assert "Members" in ended.out
    assert all(lives(key) for key in cast.values())
    assert sorted(path.name for path in Path("/dev/shm").glob(f"*{theatre.segment}*")) == before
    assert list(theatre.folder.glob("*.hangtrace")) == []


@pytest.mark.parametrize(("answer", "code", "alive"), [("n\n", 2, True), ("\n", 2, True), ("y\n", 0, False)])
def test_at_a_terminal_it_asks(theatre: Theatre, answer: str, code: int, alive: bool) -> None:
    """At a terminal it shows the plan and asks; only yes goes ahead."""
    cast = theatre.launch("plain", "rank0", "rank1")
    master, slave = pty.openpty()
    command = argv("kill-clean", str(cast["rank0"].pid), "--no-snapshot")
    process = subprocess.Popen(
        command, stdin=slave, stdout=subprocess.DEVNULL, stderr=slave, cwd=theatre.folder, env=environment()
    )
    os.close(slave)
    heard = b""
    while b"[y/N]" not in heard:
        assert select.select([master], [], [], LONGEST_S)[0]
        heard += os.read(master, 1024)
    os.write(master, answer.encode())
    assert process.wait(LONGEST_S) == code
    os.close(master)
    assert [lives(key) for key in cast.values()] == [alive] * 3


def test_another_users_launch_is_not_touched(theatre: Theatre) -> None:
    """Without root somebody else's launch is exit 4, one line, and everybody of it lives."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip(f"{NOT_TO_BE_HAD}becoming another user needs root and setpriv")
    cast = theatre.launch("plain", "rank0", "rank1")
    as_nobody = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    theatre.folder.chmod(0o777)
    python = subprocess.run(
        [*as_nobody, sys.executable, "-c", "import hangdoc.cli.main"], check=False, capture_output=True
    )
    if python.returncode:
        pytest.skip(f"{NOT_TO_BE_HAD}another user may not run this Python")
    ended = theatre.kill_clean(str(cast["rank0"].pid), "--yes", prefix=as_nobody)
    assert ended.code == 4
    assert "another user" in complaint(ended)
    assert all(lives(key) for key in cast.values())


def test_wrong_use(theatre: Theatre) -> None:
    """No such pid is 4; an impossible inclusion or one without a launch is 2, so are contrary options; all live.

    A dry run stays one with --yes.
    """
    cast = theatre.launch("plain", "rank0", "rank1")
    root = str(cast["launcher"].pid)
    assert theatre.kill_clean("4194304", "--yes").code == 4
    assert theatre.kill_clean(root, "--yes", "--include", "1").code == 2
    assert theatre.kill_clean(root, "--yes", "--include", str(os.getpid())).code == 2
    assert theatre.kill_clean(root, "--yes", "--include", "4194304").code == 4
    assert theatre.kill_clean(root, "--yes", "--dry-run").code == 0
    assert theatre.kill_clean("--yes", "--no-snapshot", "--include", root).code == 2
    assert theatre.kill_clean(root, "--yes", "--no-snapshot", "--record", "x.hangtrace").code == 2
    assert theatre.kill_clean(root, "--yes", "--gpu-timeout", "nan").code == 2
    assert theatre.kill_clean("--port", str(theatre.port), "--dry-run", "--json").code == 0
    assert all(lives(key) for key in cast.values())


def test_a_snapshot_that_cannot_be_written_stops_everything(theatre: Theatre) -> None:
    """Without evidence nothing is signalled: exit 2, with how to go on without."""
    cast = theatre.launch("plain", "rank0", "rank1")
    ended = theatre.kill_clean(str(cast["rank0"].pid), "--yes", "--json", "--record", "/nowhere/at/all.hangtrace")
    assert ended.code == 2
    assert "--no-snapshot" in complaint(ended)
    assert all(lives(key) for key in cast.values())


def test_the_evidence_is_there_before_the_end(theatre: Theatre) -> None:
    """By default a trace is written first; replay reads it, and it shows every member."""
    cast = theatre.launch("plain", "rank0", "rank1")
    ended = theatre.kill_clean(str(cast["rank0"].pid), "--yes", "--json")
    launch = json.loads(ended.out)["launches"][0]
    trace = theatre.folder / launch["snapshot"]
    replay = subprocess.run(argv("replay", str(trace), "--json"), check=False, capture_output=True, text=True)
    shown = {one["pid"] for one in json.loads(replay.stdout)["processes"]}
    assert shown == {key.pid for key in cast.values()}
    assert ended.code == 0


def test_an_ending_that_nobody_reads_is_carried_out(theatre: Theatre) -> None:
    """A closed pipe in the place of standard output changes neither what is done nor the code."""
    cast = theatre.launch("plain", "rank0", "rank1")
    reader, writer = os.pipe()
    os.close(reader)
    command = argv("kill-clean", str(cast["rank0"].pid), "--yes", "--no-snapshot")
    done = subprocess.run(
        command, stdout=writer, stdin=subprocess.DEVNULL, cwd=theatre.folder, env=environment(), check=False
    )
    os.close(writer)
    assert done.returncode == 0
    assert theatre.left() == set()


def test_a_part_of_another_launch_is_not_included(theatre: Theatre) -> None:
    """--include of another launch's root or rank would leave that one headless: exit 2, both are named, all live."""
    cast = theatre.launch("plain", "rank0", "rank1")
    theatre.forget("launcher", "rank0", "rank1")
    other = theatre.launch("plain", "rank0", "rank1")
    for name in ("launcher", "rank0"):
        ended = theatre.kill_clean(str(cast["launcher"].pid), "--yes", "--include", str(other[name].pid))
        assert ended.code == 2
        assert str(cast["launcher"].pid) in complaint(ended)
        assert f"kill-clean {other['launcher'].pid}" in complaint(ended)
    assert all(lives(key) for key in (*cast.values(), *other.values()))


def test_what_an_included_program_started_ends_with_it(theatre: Theatre) -> None:
    """--include PID takes that program's own children, too: nobody else would look after them."""
    cast = theatre.launch("plain", "rank0", "rank1")
    theatre.start([sys.executable, "-S", str(PATIENTS / "acts.py"), "unknown"])
    added = theatre.wait_for("program", "part")
    ended = theatre.kill_clean(
        str(cast["launcher"].pid), "--yes", "--no-snapshot", "--include", str(added["program"].pid)
    )
    assert ended.code == 0, ended.out
    assert theatre.left() == set()


def test_a_thread_is_not_included(theatre: Theatre) -> None:
    """A thread's number is told from a process's: exit 4, with the process to name."""
    program = "import threading, signal, os; t = threading.Thread(target=signal.pause); t.start(); os.write(1, b'x')"
    cast = theatre.launch("plain", "rank0", "rank1")
    process = theatre.start([sys.executable, "-S", "-c", program], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read(1)
    tid = max(int(one.name) for one in Path(f"/proc/{process.pid}/task").iterdir())
    ended = theatre.kill_clean(str(cast["launcher"].pid), "--yes", "--include", str(tid))
    assert ended.code == 4
    assert f"is a thread of process {process.pid}" in complaint(ended)


def test_a_zombie_that_left_nobody_is_no_launch(theatre: Theatre) -> None:
    """A dead process without anybody left cannot be ended: exit 4, and nothing is called gone."""
    dead = theatre.start([sys.executable, "-S", "-c", ""])
    os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
    ended = theatre.kill_clean(str(dead.pid), "--yes", "--no-snapshot")
    assert ended.code == 4, ended.out
    assert "dead" in complaint(ended)


def test_an_interruption_before_the_plan_is_declining(theatre: Theatre) -> None:
    """Ctrl-C while the command is still being loaded: exit 2, nothing was touched."""
    cast = theatre.launch("plain", "rank0", "rank1")
    early = "import os, signal, sys; from hangdoc.cli import entry\n"
    early += "def hook(event, told):\n if event == 'import' and told[0] == WHEN: os.kill(os.getpid(), signal.SIGINT)\n"
    early += "sys.addaudithook(hook)\n"
    early += "import typer.core\nparse = typer.core.TyperGroup.parse_args\n"
    early += "def parsing(*a): WHEN == 'parsing' and os.kill(os.getpid(), signal.SIGINT); return parse(*a)\n"
    early += "typer.core.TyperGroup.parse_args = parsing\n"
    for module in ("hangdoc.cli.main", "parsing", "hangdoc.cli.asking"):
        program = f"WHEN = {module!r}\n{early}entry.main()"
        command = [sys.executable, "-c", program, "kill-clean", str(cast["rank0"].pid), "--dry-run"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
        assert done.returncode == 2, done.stderr
        assert "Nothing was touched" in done.stderr
    assert all(lives(key) for key in cast.values())
