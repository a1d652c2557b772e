"""Whether a script may start its launch again is read from its text."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from hangdoc.ending.scripts import may_repeat
from hangdoc.launch.table import read_entry

PROC = Path("/proc")


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        ("while true; do serve; sleep 9; done", True),
        ("set -e\nuntil serve\ndo sleep 1\ndone", True),
        ("serve; sleep 9; exec $0", True),
        ('serve\nexec "$0" "$@"\n', True),
        ('cd "$(dirname "$0")"\nserve\nsleep 9', False),
        ("echo waiting for the server while it starts; serve; sleep 9", False),
        ("python3 -c 'import sys\nfor line in sys.stdin: pass' & serve; sleep 9", False),
        ("python3 - <<'END'\nfor one in two:\n    pass\nEND\nserve; sleep 9", False),
        ("serve # don't\nwhile true; do serve; done", True),
        ("echo it\\'s; until serve; do sleep 1; done", True),
        ("# while this runs, for once\nserve; sleep 9", False),
    ],
)
def test_a_loop_is_found_where_a_command_begins(tmp_path: Path, text: str, repeats: bool) -> None:
    """A loop, or the script calling itself, may bring the launch back; the words alone in a text or comment do not."""
    own = read_entry(PROC, os.getpid())
    assert own is not None
    script = tmp_path / "run.sh"
    script.write_text(text)
    assert may_repeat(PROC, replace(own, argv=("bash", "-c", text))) is repeats
    assert may_repeat(PROC, replace(own, argv=("/bin/sh", "-e", str(script), "x"))) is repeats


def test_what_cannot_be_read_is_not_known(tmp_path: Path) -> None:
    """A script that is gone, or commands from standard input: not known; a program that is no shell has no loop."""
    own = read_entry(PROC, os.getpid())
    assert own is not None
    assert may_repeat(PROC, replace(own, argv=("bash", str(tmp_path / "gone.sh")))) is None
    assert may_repeat(PROC, replace(own, argv=("bash", "-s"))) is None
    assert may_repeat(PROC, replace(own, argv=("timeout", "9", "serve"))) is False
