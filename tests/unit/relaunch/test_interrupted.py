"""Ctrl-C, SIGTERM or SIGHUP while the old launch is being ended: who ended, who is left and what to do is told."""

from __future__ import annotations

import signal
import subprocess

import pytest

from tests.unit.cli.commands import LONGEST_S, argv, environment
from tests.unit.ending.theatre import lives
from tests.unit.relaunch.stage import Stage


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_of_the_ending_is_told(stage: Stage, number: signal.Signals) -> None:
    """Exit 1: nothing was started, who is left, a command that ends them by a rank, and one that starts it again."""
    cast = stage.launch("asked", "rank")
    command = argv("relaunch", str(cast["rank"].pid), "--yes", "--log", "new.log")
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=stage.folder,
        env={**environment(), **stage.environment("ready")},
    ) as hangdoc:
        stage.wait_for("asked")
        hangdoc.send_signal(number)
        _, err = hangdoc.communicate(timeout=LONGEST_S)
    (trace,) = stage.folder.glob("*.hangtrace")
    assert hangdoc.returncode == 1, err
    assert "interrupted while the old launch was being ended: nothing was started" in err
    assert f"{cast['rank'].pid} (sglang::scheduler)" in err
    assert f"hangdoc kill-clean {cast['rank'].pid}\n" in err
    assert f"to start it again: hangdoc relaunch --from {trace}\n" in err
    assert lives(cast["rank"])
    assert not (stage.folder / "new.log").exists()
