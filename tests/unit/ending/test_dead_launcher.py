"""A launcher that was killed and that nobody waited for: naming it ends what it left, and nothing is called gone."""

from __future__ import annotations

import json
import os
import signal
import sys

import pytest

from tests.unit.ending.theatre import PATIENTS, Theatre, lives

FAST = ("--yes", "--no-snapshot", "--json")


@pytest.mark.parametrize("named", ["launcher", "survivor"])
@pytest.mark.parametrize("act", ["forks", "plain", "unknown"])
def test_what_an_unburied_launcher_left_is_ended(theatre: Theatre, act: str, named: str) -> None:
    """The children of a zombie that led their session are members, whatever their command line, and whichever of them
    is named; a bystander lives."""
    bystander = theatre.bystander()
    if act == "unknown":
        theatre.start([sys.executable, "-S", str(PATIENTS / "acts.py"), act])
        cast = theatre.wait_for("program", "part")
    else:
        cast = theatre.launch(act, *{"forks": ("child0", "child1"), "plain": ("rank0", "rank1")}[act])
    top = cast["program" if act == "unknown" else "launcher"]
    os.kill(top.pid, signal.SIGKILL)
    os.waitid(os.P_PID, top.pid, os.WEXITED | os.WNOWAIT)
    survivor = next(key for key in cast.values() if lives(key))
    ended = theatre.kill_clean(str((top if named == "launcher" else survivor).pid), *FAST)
    launch = json.loads(ended.out)["launches"][0]
    assert ended.code == 0, launch
    assert [name for name, key in cast.items() if lives(key)] == []
    assert theatre.left() == {bystander.pid}
