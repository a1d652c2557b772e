"""A command line after --, Ctrl-C, --dry-run, and everything that is refused before anything is touched."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.commands import LONGEST_S, argv, environment
from tests.unit.ending.theatre import lives
from tests.unit.relaunch.stage import Ended, Stage


def refused(ended: Ended, code: int, *words: str) -> None:
    """One clear line, nothing on standard output."""
    assert (ended.code, ended.out) == (code, ""), ended
    (line,) = ended.err.splitlines()
    assert line.startswith("hangdoc: ")
    for word in words:
        assert word in line


def test_a_command_line_is_started_and_watched(stage: Stage) -> None:
    """Nothing is asked, since nothing is ended: ready is exit 0."""
    ended = stage.relaunch("--json", "--", *stage.server())
    assert ended.code == 0, ended.err
    document = ended.document
    assert (document["origin"]["kind"], document["ends_first"], document["ended"]) == ("command", [], None)
    assert document["started"]["pid"] in stage.servers()
    assert Path(document["started"]["log"]).parent == stage.folder
    assert Path(document["started"]["log"]).stat().st_mode & 0o777 == 0o600


def test_a_script_is_waited_for_until_it_has_started_the_engine(stage: Stage) -> None:
    """`bash run.sh` has no engine at first; what is watched is the engine below it."""
    script = stage.folder / "run.sh"
    script.write_text(f"true\n{' '.join(stage.server())}\ntrue\n")
    ended = stage.relaunch("--json", "--", "bash", str(script))
    assert ended.code == 0, ended.err
    assert ended.document["diagnosis"]["target"]["engine"] == "sglang"


@pytest.mark.parametrize(
    ("code", "until", "expected"), [(0, "exit", 0), (0, "ready", 3), (7, "exit", 1), (7, "ready", 1)]
)
def test_a_program_that_ends_is_judged_by_its_exit_code(stage: Stage, code: int, until: str, expected: int) -> None:
    """Whatever it is: its end was waited for, or it came before the launch was ready, or it is a crash."""
    words = (sys.executable, "-IS", "-c", f"print('goodbye'); raise SystemExit({code})")
    ended = stage.relaunch("--until", until, "--", *words)
    assert ended.code == expected, ended.err
    assert f"exit code {code}" in ended.err
    assert "goodbye" in ended.err


def test_time_that_is_over_leaves_the_server(stage: Stage) -> None:
    """--timeout first is exit 3 where nothing hangs, and the program stays."""
    words = (sys.executable, "-IS", "-c", "import signal; signal.pause()")
    ended = stage.relaunch("--json", "--timeout", "2", "--", *words)
    assert (ended.code, ended.document["end"]) == (3, "time"), ended.err
    assert ended.document["started"]["pid"] in stage.left()


def test_ctrl_c_leaves_the_server(stage: Stage) -> None:
    """hangdoc goes, says the pid and what ends it; the server, in a session of its own, does not notice."""
    command = argv("relaunch", "--until", "exit", "--", *stage.server())
    env = {**environment(), **stage.environment("ready")}
    hangdoc = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env, cwd=stage.folder
    )
    assert hangdoc.stderr is not None
    heard = []
    for line in hangdoc.stderr:
        heard.append(line)
        if "healthy" in line:
            break
    hangdoc.send_signal(signal.SIGINT)
    _, rest = hangdoc.communicate(timeout=LONGEST_S)
    (server,) = stage.servers()
    assert hangdoc.returncode == 0
    assert f"pid {server}: it goes on without hangdoc; to end it: hangdoc kill-clean {server}" in rest


def test_a_dry_run_touches_nothing(stage: Stage) -> None:
    """Exit 0 with the plan, no file made, the old launch as it was; no --yes needed."""
    cast = stage.launch("ready", "rank")
    before = sorted(stage.folder.iterdir())
    ended = stage.relaunch(str(cast["launcher"].pid), "--dry-run", "--set", "NCCL_DEBUG=INFO")
    assert ended.code == 0, ended.err
    assert "NCCL_DEBUG=INFO (not set before): set by --set" in ended.out
    assert " ".join(stage.server()) in " ".join(ended.out.split())
    assert all(map(lives, cast.values()))
    assert sorted(stage.folder.iterdir()) == before


def test_without_a_terminal_it_needs_yes(stage: Stage) -> None:
    """The plan was shown, nothing was touched."""
    cast = stage.launch("ready", "rank")
    ended = stage.relaunch(str(cast["launcher"].pid))
    assert ended.code == 2
    assert "add --yes" in ended.err
    assert all(map(lives, cast.values()))


def test_secrets_are_passed_on_and_not_shown(stage: Stage) -> None:
    """Neither in the plan nor in the document, whether by option, variable or look; the server gets them all."""
    secrets = ("tell-no-one", "hf_abcdefghijklmnop", "open-sesame", "quiet-please")
    words = ["--api-key", secrets[0], f"--unknown-thing={secrets[2]}", "--hub", secrets[1], "--max-total-tokens", "64"]
    for arguments in (["--json"], []):
        ended = stage.relaunch(*arguments, "--set", f"MY_TOKEN={secrets[3]}", "--", *stage.server(), *words)
        assert ended.code == 0, ended.err
        assert not [one for one in secrets if one in ended.out + ended.err]
        assert "--max-total-tokens" in ended.out
        ((pid, started),) = stage.servers().items()
        assert started == (*stage.server(), *words)
        assert f"MY_TOKEN={secrets[3]}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
        stage.close_launches()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ("PID", "--from", "--")),
        (("4711", "--", "true"), ("one of them",)),
        (("--map", "a=b", "--", "true"), ("--map", "--from")),
        (("--set", "=x", "--", "true"), ("--set", "NAME=VALUE")),
        (("--set", "A B=x", "--", "true"), ("--set", "A B", "no name of a variable")),
        (("--set", "1A=x", "--", "true"), ("--set", "1A", "no name of a variable")),
        (("--patience", "x", "--", "true"), ("--patience",)),
        (("--", "no-such-program"), ("no-such-program", "nothing was started")),
        (("--", "./here"), ("./here", "nothing was started")),
        (("--", ""), ("nothing was started",)),
        (("--profile", "h100", "--", "true"), ("h100", "auto, sm120, none")),
        (("--profile", "./none.toml", "--", "true"), ("none.toml", "cannot be read")),
        (("--log", "no/such/directory", "--", "true"), ("no/such/directory", "--log")),
        (("--log", ".", "--", "true"), ("--log",)),
        (("--from", "no.hangtrace"), ("no.hangtrace", "cannot be read")),
        (("--from", "."), ("not a hangdoc trace",)),
    ],
)
def test_bad_input_is_one_line(stage: Stage, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    """Exit 2 before anything is started: what is wrong, what to do."""
    refused(stage.relaunch(*arguments), 2, *words)
    assert stage.left() == set()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"echo hello\n", "neither a binary nor a script"),
        (b"", "neither a binary nor a script"),
        (b"#!/no/such/interpreter\n", "'/no/such/interpreter' is not there"),
        (b"#!/bin/sh\r\n", r"'/bin/sh\r' is not there"),
        (b"#!/usr/bin/env no-such-interpreter\n", "no-such-interpreter is not on the PATH"),
        (b"#!\n", "names no interpreter"),
    ],
)
def test_a_program_that_cannot_be_executed_is_refused_before_anything_is_ended(
    stage: Stage, content: bytes, why: str
) -> None:
    """It is there and may be run, but the kernel would not take it: exit 2, and no file is left."""
    program = stage.folder / "program"
    program.write_bytes(content)
    program.chmod(0o755)
    before = sorted(stage.folder.iterdir())
    refused(stage.relaunch("--", "./program"), 2, "./program", why, "nothing was started or ended")
    assert sorted(stage.folder.iterdir()) == before


def test_a_start_that_fails_leaves_no_empty_log(stage: Stage) -> None:
    """A program that is being written is refused by the kernel only: exit 2, and no file that nobody wrote to."""
    program = stage.folder / "program"
    shutil.copy("/bin/true", program)
    with program.open("r+b"):
        ended = stage.relaunch("--log", "new.log", "--", "./program")
    assert ended.code == 2, ended.err
    assert "nothing was started" in ended.err
    assert not (stage.folder / "new.log").exists()


def test_a_launch_lives_on_when_its_program_was_broken(stage: Stage) -> None:
    """By pid, too: a loader that is gone is found in the ELF file, and the old launch is not touched."""
    program = stage.folder / "python"
    shutil.copy(Path(sys.executable).resolve(), program)
    old = stage.start([str(program), "-IS", "-c", "import signal; signal.pause()"])
    loader = b"/lib64/ld-linux-x86-64.so.2"
    stage.folder.joinpath("broken").write_bytes(program.read_bytes().replace(loader, loader.replace(b"ld-", b"no-")))
    stage.folder.joinpath("broken").chmod(0o755)
    stage.folder.joinpath("broken").replace(program)
    refused(stage.relaunch(str(old.pid), "--yes"), 2, "cannot be executed", "loader")
    assert old.poll() is None


def test_a_process_that_is_not_there_is_exit_4(stage: Stage) -> None:
    """No such pid."""
    refused(stage.relaunch("4194304", "--yes"), 4, "no process 4194304")


def test_who_called_hangdoc_is_not_ended(stage: Stage) -> None:
    """The pid of hangdoc's own caller is refused."""
    refused(stage.relaunch(str(os.getpid()), "--yes"), 2, "never ends")


def test_a_log_with_an_earlier_start_in_it_is_refused(stage: Stage) -> None:
    """Its "ready" would be taken for the new launch's; the old launch lives on."""
    cast = stage.launch("ready", "rank")
    (stage.folder / "a.log").write_text("The server is fired up and ready to roll!\n")
    refused(stage.relaunch(str(cast["launcher"].pid), "--yes", "--log", "a.log"), 2, "a.log is there already")
    assert all(map(lives, cast.values()))


def test_a_port_that_another_launch_has_is_refused(stage: Stage) -> None:
    """A command line is started only where its port is free: who listens is named, and lives."""
    cast = stage.launch("ready", "rank")
    refused(stage.relaunch("--", *stage.server()), 2, f"port {stage.port}", f"process {cast['launcher'].pid}")
    assert all(map(lives, cast.values()))


def test_a_working_directory_that_is_gone_is_refused(stage: Stage) -> None:
    """Nothing is ended for a launch that could not start."""
    there = stage.folder / "there"
    there.mkdir()
    stage.start(stage.server(), "ready", cwd=there)
    cast = stage.wait_for("launcher", "rank")
    there.rmdir()
    refused(stage.relaunch(str(cast["launcher"].pid), "--yes"), 2, "working directory", "nothing was started or ended")
    assert all(map(lives, cast.values()))


def test_ranks_without_a_launcher_do_not_tell_the_command(stage: Stage) -> None:
    """What a dead launcher left may be ended by kill-clean, but not started again."""
    cast = stage.launch("orphans", "rank")
    os.kill(cast["launcher"].pid, signal.SIGKILL)
    stage.close_programs()
    refused(stage.relaunch(str(cast["rank"].pid), "--yes"), 2, "launcher of this launch is gone")
    assert lives(cast["rank"])


def test_the_document_names_every_part(stage: Stage) -> None:
    """A dry run's document, too."""
    ended = stage.relaunch("--dry-run", "--json", "--", *stage.server())
    document = json.loads(ended.out)
    assert set(document) == {
        *("schema", "hangdoc", "taken_at", "dry_run", "origin", "command", "profile", "ends_first", "ended"),
        *("started", "end", "diagnosis", "ended_again", "exit_code", "capture", "prompts"),
    }
    assert (document["dry_run"], document["started"], document["exit_code"]) == (True, None, 0)
