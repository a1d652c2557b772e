"""The report of a log: short, with what it lacks said once."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console, Group

from hangdoc.diagnosis import diagnose
from hangdoc.logs.read import Wishes, read
from hangdoc.report.terminal import parts

STARTS = "".join(f"[2026-11-29 12:00:00 TP{rank}] Load weight begin. avail mem=3 GB\n" for rank in range(64))
FAILED = STARTS + "[2026-11-29 12:00:10 TP7] Scheduler hit an exception: x\nValueError: y\n"


def report(text: str, directory: Path) -> str:
    log = directory / "server.log"
    log.write_text(text)
    console = Console(file=StringIO(), width=100, color_system=None)
    console.print(Group(*parts(diagnose(read([log], Wishes()), "log"))))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("text", [STARTS, FAILED])
def test_what_is_missing_is_said_once(text: str, tmp_path: Path) -> None:
    """64 ranks of which no log tells anything are one line, and the report fits a screen."""
    told = report(text, tmp_path)
    assert told.count("run hangdoc watch on the machine") == 1
    assert told.count("not-in-input") == 0
    assert len(told.splitlines()) < 60


def test_a_failure_is_told_with_its_place_and_a_command(tmp_path: Path) -> None:
    """The report of a crash has the line, who it was, and the command that shows it."""
    told = report(FAILED, tmp_path)
    assert "line 65: TP7: Scheduler hit an exception: an exception: ValueError" in told
    assert "sed -n 60,125p" in " ".join(told.split())


def test_equal_failures_are_told_once(tmp_path: Path) -> None:
    """A failure that a log repeats is told once, with how often it came."""
    told = report(STARTS + "RuntimeError: CUDA error: x\n" * 15, tmp_path)
    assert told.count("CUDA error (15 times)") == 1
