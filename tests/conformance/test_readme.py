"""What the README shows is what hangdoc does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from hangdoc.cli.main import app
from hangdoc.errors import ExitCode

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
GOLDEN = ROOT / "tests" / "golden" / "absent-barrier.hangtrace"


def shape(text: str) -> str:
    """A text without the numbers that each recording has of its own, and without the line breaks that they shift."""
    return " ".join(re.sub(r"\d+", "N", text).split())


def test_the_report_is_a_real_one() -> None:
    """What the README shows of a report is what that recording's report says, in the same order."""
    block = README.partition("--once\n")[2].partition("$ echo $?")[0]
    program = "from hangdoc.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "replay", str(GOLDEN)], capture_output=True, text=True, check=False
    )
    left = shape(done.stdout)
    for passage in re.split(r"^ \.\.\.$", block, flags=re.MULTILINE):
        for sentence in filter(None, map(shape, re.split(r"\n(?= [x+>] )", passage))):
            assert sentence in left
            left = left.partition(sentence)[2]
    assert done.returncode == 1


def test_every_command_of_the_readme_exists() -> None:
    """The README names no command that is not there, and leaves none out."""
    named = set(re.findall(r"`hangdoc ([a-z-]+)", README))
    callbacks = [command.callback for command in app.registered_commands if command.callback is not None]
    offered = {callback.__name__.replace("_", "-") for callback in callbacks}
    assert named == offered


def test_every_exit_code_is_explained() -> None:
    """The table of exit codes has all of them."""
    rows = re.findall(r"^\| (\d) \|", README, re.MULTILINE)
    assert [int(row) for row in rows] == sorted(ExitCode)


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\((?!http)([^)#]+)\)", README))))
def test_links_lead_somewhere(link: str) -> None:
    """A link into the repository has its file."""
    assert (ROOT / link).exists()
