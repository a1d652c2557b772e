"""FIFOs in the place of files: a command that reads one would wait for a writer that never comes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.cli.commands import REPOSITORY, complaint, run

TRACE = str(REPOSITORY / "tests" / "golden" / "absent-barrier.hangtrace")
CAPTURE = ("--capture-layers", "1", "--capture-dir", "states")


@pytest.mark.parametrize(
    "arguments",
    [
        ("replay", "FIFO"),
        ("replay", TRACE, "--expect", "FIFO"),
        ("relaunch", "--dry-run", "--profile", "FIFO", "--", "sleep", "1"),
        ("relaunch", "--dry-run", *CAPTURE, "--prompts", "FIFO", "--", "sleep", "1"),
    ],
    ids=["trace", "expectation", "profile", "prompts"],
)
def test_a_fifo_is_refused(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """In one line, with exit code 2, and without waiting."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    ended = run(*(str(fifo) if one == "FIFO" else one for one in arguments))
    assert ended.code == 2
    assert "not a regular file" in complaint(ended)
