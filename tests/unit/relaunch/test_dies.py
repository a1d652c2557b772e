"""A new launch whose first process dies while it is watched: who is left is told, and what the log said last."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from tests.unit.cli.commands import LONGEST_S, argv, environment
from tests.unit.ending.theatre import lives
from tests.unit.relaunch.stage import Ended, Stage

KEY = "sk-abcdefghijklmnop0123456789"


def killed(stage: Stage, act: str, *arguments: str) -> Ended:
    """Start it, and kill its first process once it has said that it is ready and was looked at."""
    command = argv("relaunch", *arguments, "--log", "new.log", "--until", "exit", "--", *stage.server())
    env = {**environment(), **stage.environment(act), "MY_WORD": KEY}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd=stage.folder
    ) as hangdoc:
        assert hangdoc.stderr is not None
        for line in hangdoc.stderr:
            if "ready to roll" in line:
                break
        stage.wait_for("launcher")
        os.kill(stage.cast["launcher"].pid, signal.SIGKILL)
        out, err = hangdoc.communicate(timeout=LONGEST_S)
    return Ended(hangdoc.returncode, out, err)


def test_ranks_that_live_on_are_named(stage: Stage) -> None:
    """The printed command ends them, although the launcher is gone."""
    ended = killed(stage, "orphans")
    rank = stage.wait_for("rank")["rank"]
    assert ended.code == 1, ended.err
    assert lives(rank)
    assert f"others of it live; to end them: hangdoc kill-clean {rank.pid}\n" in ended.err
    assert "the others still wait for it" in ended.out
    command = argv("kill-clean", str(rank.pid), "--yes", "--no-snapshot")
    subprocess.run(command, check=False, env=environment(), timeout=LONGEST_S, capture_output=True)
    assert not lives(rank)


def test_ranks_that_live_on_are_ended_when_that_is_wished(stage: Stage) -> None:
    """--kill-on-hang finds them without their launcher."""
    ended = killed(stage, "orphans", "--kill-on-hang")
    assert ended.code == 1, ended.err
    assert not lives(stage.wait_for("rank")["rank"])


def test_one_that_was_alone_leaves_nobody_who_waits(stage: Stage) -> None:
    """The report names no others, the log's last lines stand beside it, and a key by its look is not in them."""
    ended = killed(stage, "alone")
    assert ended.code == 1, ended.err
    assert "others still wait" not in ended.out
    assert "kill-clean" not in ended.err
    assert "ready to roll" in ended.err.partition("has ended")[2]
    assert KEY not in ended.out + ended.err


def test_a_key_of_the_programs_own_is_not_shown(stage: Stage) -> None:
    """What hangdoc did not pass on, it knows by shape: last lines are redacted as `hangdoc redact` does."""
    script = f"print('TOKEN={KEY}'); print('Authorization: Bearer {KEY[3:]}'); raise SystemExit('no weights')"
    path = stage.folder / "program.py"
    path.write_text(script)
    ended = stage.relaunch("--", sys.executable, "-IS", str(path))
    assert ended.code == 1, ended.err
    assert "no weights" in ended.err
    assert KEY[3:] not in ended.out + ended.err
