"""Scarce means and early interruption: one clear line, never a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.unit.cli.commands import WAITS, complaint, environment, program, python, run

FEW_FILES = ("/bin/sh", "-c", 'ulimit -n 10; exec "$@"', "sh")
ENTRY = "from hangdoc.cli.entry import main; main()"


def test_too_few_files() -> None:
    """Where so few files may be open that hangdoc cannot work, it says so, and how to raise the limit."""
    with program(*python(WAITS)) as patient:
        ended = run("watch", str(patient.pid), "--once", prefix=FEW_FILES)
    assert ended.code == 2
    assert "10 files" in complaint(ended)
    assert "ulimit -n" in ended.err


def test_ctrl_c_during_the_imports(tmp_path: Path) -> None:
    """Ctrl-C before the command line is there is one line and 3, as it is a moment later."""
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")
    ended = subprocess.run(
        [sys.executable, "-c", ENTRY, "probes"],
        capture_output=True,
        text=True,
        check=False,
        env={**environment(), "PYTHONPATH": str(tmp_path)},
    )
    assert (ended.returncode, ended.stdout) == (3, "")
    assert ended.stderr == "hangdoc: interrupted before there was a result.\n"
