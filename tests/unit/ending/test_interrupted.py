"""Ctrl-C, SIGTERM or SIGHUP while a launch is being ended: the code and the report say how far it came."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from tests.unit.cli.commands import LONGEST_S, argv, environment, wait_until
from tests.unit.ending.theatre import Theatre, lives


def begin(theatre: Theatre, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        argv("kill-clean", *arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=theatre.folder,
        env=environment(),
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_ending_says_how_far_it_came(theatre: Theatre, number: signal.Signals) -> None:
    """Ctrl-C, or a signal that asks hangdoc to end: exit 1; the document has signals, who lives and the evidence."""
    cast = theatre.launch("tells_of_sigterm", "rank0", "rank1")
    with begin(theatre, str(cast["rank0"].pid), "--yes", "--json") as command:
        theatre.wait_for("asked")
        command.send_signal(number)
        out, err = command.communicate(timeout=LONGEST_S)
    document = json.loads(out)
    launch = document["launches"][0]
    assert (command.returncode, document["exit_code"]) == (1, 1), err
    assert launch["done"]["interrupted"] is True
    assert launch["done"]["steps"][0].startswith(f"SIGTERM to {cast['launcher'].pid}")
    assert {one["pid"] for one in launch["done"]["survivors"]} == {key.pid for key in cast.values() if lives(key)}
    assert (theatre.folder / launch["snapshot"]).stat().st_size > 0


def test_an_interrupted_ending_is_told_to_people(theatre: Theatre) -> None:
    """Without --json the same in words: interrupted, which signals, who is still there."""
    cast = theatre.launch("tells_of_sigterm", "rank0", "rank1")
    with begin(theatre, str(cast["rank0"].pid), "--yes", "--no-snapshot") as command:
        theatre.wait_for("asked")
        command.send_signal(signal.SIGINT)
        out, err = command.communicate(timeout=LONGEST_S)
    assert command.returncode == 1, err
    assert "INTERRUPTED" in out
    assert f"SIGTERM to {cast['launcher'].pid}" in out
    assert "Still there" in out


def test_an_interruption_of_the_evidence_sends_no_signal(theatre: Theatre) -> None:
    """Ctrl-C while the trace is written is no permission to go on: exit 1, and nothing after it is begun."""
    cast = theatre.launch("tells_of_sigterm", "rank0", "rank1")
    with begin(theatre, str(cast["rank0"].pid), "--yes", "--json") as command:
        wait_until(lambda: list(theatre.folder.glob("*.hangtrace*")) != [])
        command.send_signal(signal.SIGINT)
        out, err = command.communicate(timeout=LONGEST_S)
    done = json.loads(out)["launches"][0]["done"]
    assert command.returncode == 1, err
    assert done["interrupted"] is True
    assert bool(done["steps"]) or all(lives(key) for key in cast.values())


IMPORTS = """import builtins, os, signal, sys
real = builtins.__import__
def stands_still(name, *rest):
    if name == "hangdoc.cli.main":
        os.write(1, b"x")
        signal.pause()
    return real(name, *rest)
builtins.__import__ = stands_still
from hangdoc.cli.entry import main
main()"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_during_the_imports_is_declining(number: signal.Signals) -> None:
    """Asked to end before anything was looked at, hangdoc says that nothing was touched: exit 2."""
    command = [sys.executable, "-c", IMPORTS, "kill-clean", "1", "--yes"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=environment()) as started:
        assert started.stdout is not None
        try:
            assert started.stdout.read(1) == b"x"
            started.send_signal(number)
            _, err = started.communicate(timeout=LONGEST_S)
        finally:
            started.kill()
    assert (started.returncode, err) == (2, b"hangdoc: interrupted. Nothing was touched.\n")
