"""The options of a capture: what they add to a plan, and what is refused before anything is touched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.ending.theatre import lives
from tests.unit.relaunch.stage import Stage


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--capture-layers", "1"), ("--capture-dir",)),
        (("--capture-dir", "d"), ("--capture-layers",)),
        (("--capture-format", "safetensors"), ("--capture-layers",)),
        (("--capture-layers", "one", "--capture-dir", "d"), ("not layer numbers",)),
        (("--capture-layers", "-1", "--capture-dir", "d"), ("below 0",)),
        (("--capture-layers", "1", "--capture-dir", "d"), ("looked for", "did not find it")),
    ],
)
def test_what_cannot_be_captured_is_refused_first(
    stage: Stage, options: tuple[str, ...], words: tuple[str, ...]
) -> None:
    """One line, exit 2; the old launch, whose SGLang has nothing to hook into, lives."""
    cast = stage.launch("ready", "rank")
    ended = stage.relaunch(str(cast["launcher"].pid), "--yes", *options)
    assert (ended.code, ended.out) == (2, "")
    (line,) = ended.err.splitlines()
    for word in words:
        assert word in line
    assert all(map(lives, cast.values()))
    assert not (stage.folder / "d").exists()


def test_a_script_cannot_be_captured(stage: Stage) -> None:
    """Its launcher is not in the command: nothing can be checked, nothing added."""
    ended = stage.relaunch("--capture-layers", "1", "--capture-dir", "d", "--", "bash", "run.sh")
    assert ended.code == 2
    assert "no SGLang launcher" in ended.err


def test_without_the_options_there_is_no_capture(stage: Stage) -> None:
    """Neither in the plan nor in the command."""
    document = stage.relaunch("--dry-run", "--json", "--", *stage.server()).document
    assert document["capture"] is None
    assert json.dumps(document["command"]).count("PYTHONPATH") == 0
    assert not list(Path(stage.folder).glob("**/.hangdoc"))
