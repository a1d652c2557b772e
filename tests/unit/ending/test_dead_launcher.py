"""A launcher that was killed and that nobody waited for: naming it ends what it left, and nothing is called gone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.unit.ending.theatre import LOST, PATIENTS, Theatre, lives

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


def _left_by_a_dead_launcher(theatre: Theatre, output: int) -> int:
    """Put up a launch that writes there and end its launcher, buried; returns a rank's pid."""
    cast = theatre.launch("plain", "rank0", "rank1", stdout=output, stderr=output)
    os.kill(cast["launcher"].pid, signal.SIGKILL)
    theatre.bury(cast["launcher"].pid)
    return cast["rank0"].pid


@pytest.mark.parametrize("shared", ["written pipe", "read pipe", "log"])
def test_who_is_older_than_all_that_is_left_is_in_doubt(theatre: Theatre, shared: str) -> None:
    """When a dead launcher started nobody knows: who shares its ranks' output is shown and lives, and the code is 1,
    even when he is older than every rank."""
    reader, writer = os.pipe()
    with (theatre.folder / "log").open("w") as log:
        output = log.fileno() if shared == "log" else writer
        null = subprocess.DEVNULL
        streams = (
            {"stdin": reader, "stdout": null, "stderr": null}
            if shared == "read pipe"
            else {"stdout": output, "stderr": output}
        )
        theatre.start([sys.executable, "-S", "-c", LOST], **streams)
        lost = theatre.wait_for("lost")["lost"]
        rank = _left_by_a_dead_launcher(theatre, output)
    os.close(reader)
    os.close(writer)
    ended = theatre.kill_clean(str(rank), *FAST)
    launch = json.loads(ended.out)["launches"][0]
    assert lives(lost), launch
    assert ended.code == 1, launch
    assert [one["pid"] for one in launch["after"]["doubtful"]] == [lost.pid]
    assert theatre.left() == {lost.pid}


def test_who_is_older_than_a_living_launcher_is_no_part_of_it(theatre: Theatre) -> None:
    """A stranger that writes to the same log, but was there before the launch, does not keep it from being gone."""
    with (theatre.folder / "log").open("w") as log:
        theatre.start([sys.executable, "-S", "-c", LOST], stdout=log, stderr=log)
        lost = theatre.wait_for("lost")["lost"]
        cast = theatre.launch("plain", "rank0", "rank1", stdout=log, stderr=log)
    ended = theatre.kill_clean(str(cast["rank0"].pid), *FAST)
    assert ended.code == 0, ended.out
    assert theatre.left() == {lost.pid}
