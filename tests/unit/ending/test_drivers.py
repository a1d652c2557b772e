"""What one driver, notebook or script has started is several launches: one is ended, and the others live."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from typing import Any

from hangdoc.model.process import ProcessKey
from tests.unit.cli.commands import wait_until
from tests.unit.ending.test_dead_launcher import FAST
from tests.unit.ending.theatre import PATIENTS, STAYS, Theatre, lives

RANKS = ("a0", "a1", "b0", "b1")


def with_a_dead_server(theatre: Theatre) -> dict[str, ProcessKey]:
    """Put up a living driver with two servers, one of them dead and not waited for."""
    theatre.start([sys.executable, "-S", str(PATIENTS / "drives.py")])
    cast = theatre.wait_for("driver", "a", "b", *RANKS)
    os.kill(cast["a"].pid, signal.SIGKILL)
    wait_until(lambda: not lives(cast["a"]))
    return cast


def end(theatre: Theatre, *arguments: str) -> tuple[int, dict[str, Any]]:
    ended = theatre.kill_clean(*arguments, *FAST)
    assert ended.out, ended.err
    return ended.code, json.loads(ended.out)["launches"][0]


def alive(cast: dict[str, ProcessKey]) -> set[str]:
    return {name for name, key in cast.items() if lives(key)}


def test_the_ranks_of_a_dead_server_end_and_the_other_server_lives(theatre: Theatre) -> None:
    """Named is an orphan of the dead server; all hold the pipe to the driver's resource tracker: that ties nobody."""
    cast = with_a_dead_server(theatre)
    code, launch = end(theatre, str(cast["a1"].pid))
    assert alive(cast) == {"driver", "b", "b0", "b1"}, launch
    assert code == 0, launch


def test_the_orphans_of_a_driver_s_other_server_are_in_doubt(theatre: Theatre) -> None:
    """Named is the living server, by its port: what the dead one left lives, is shown, and the code is 1."""
    cast = with_a_dead_server(theatre)
    code, launch = end(theatre, "--port", str(theatre.port))
    assert alive(cast) == {"driver", "a0", "a1"}, launch
    assert {one["pid"] for one in launch["after"]["doubtful"]} == {cast["a0"].pid, cast["a1"].pid}
    assert code == 1, launch


def test_a_fork_of_a_dead_launcher_is_in_doubt(theatre: Theatre) -> None:
    """It has the dead launcher's command line, but is no launch of its own: it is left, shown, and the code is 1."""
    cast = theatre.launch("leaves_a_fork", "rank0", "lost")
    os.kill(cast["launcher"].pid, signal.SIGKILL)
    theatre.bury(cast["launcher"].pid)
    code, launch = end(theatre, str(cast["rank0"].pid))
    assert alive(cast) == {"lost"}, launch
    assert "fork" in next(one["because"] for one in launch["look_alikes"] if one["pid"] == cast["lost"].pid)
    assert code == 1, launch


def notebook(theatre: Theatre, act: str) -> None:
    """Start a notebook kernel that plays an act: it has an engine's processes as children."""
    (theatre.folder / "ipykernel_launcher.py").write_text("import acts, sys; acts.main(sys.argv[1])")
    theatre.start([sys.executable, "-S", "-m", "ipykernel_launcher", act], cwd=theatre.folder)


def test_a_fork_of_a_dead_notebook_is_in_doubt(theatre: Theatre) -> None:
    """A notebook is dead that had forked its ranks and one process more, which still is called as it was."""
    notebook(theatre, "leaves_a_fork")
    cast = theatre.wait_for("launcher", "rank0", "lost")
    os.kill(cast["launcher"].pid, signal.SIGKILL)
    theatre.bury(cast["launcher"].pid)
    code, launch = end(theatre, str(cast["rank0"].pid))
    assert alive(cast) == {"lost"}, launch
    assert code == 1, launch


def test_two_engines_of_a_living_notebook_are_in_doubt(theatre: Theatre) -> None:
    """Of two ranks of the same name nobody knows whose the third is: only the one that was named ends."""
    notebook(theatre, "two_engines")
    cast = theatre.wait_for("launcher", "rank0", "rank1", "other")
    code, launch = end(theatre, str(cast["rank1"].pid))
    assert alive(cast) == {"launcher", "rank0", "other"}, launch
    assert {one["pid"] for one in launch["after"]["doubtful"]} == {cast["rank0"].pid, cast["other"].pid}
    assert code == 1, launch


def test_a_notebook_whose_ranks_have_ended_runs_no_launch(theatre: Theatre) -> None:
    """Zombies that the notebook does not wait for are no launches to choose from: it is refused for what it is."""
    notebook(theatre, "zombie")
    cast = theatre.wait_for("launcher", "dead", "rank0", "rank1")
    assert theatre.kill_clean(str(cast["rank1"].pid), *FAST).code == 0
    refused = theatre.kill_clean(str(cast["launcher"].pid), *FAST)
    assert refused.code == 2
    assert "several launches" not in refused.err
    assert lives(cast["launcher"])


def test_a_loop_beside_another_program_may_bring_the_launch_back(theatre: Theatre) -> None:
    """A script that runs something else, too, is never ended; as it has a loop, the launch is not called gone."""
    own = shlex.join([sys.executable, "-S", "-c", STAYS])
    script = f"{own} & while true; do {shlex.join(theatre.server())}; read -t 1000 <> {theatre.fifo}.lifeline; done"
    bash = theatre.start(["bash", "-c", script])
    cast = theatre.wait_for("launcher", "rank0", "rank1", "own")
    code, launch = end(theatre, str(cast["launcher"].pid))
    assert alive(cast) == {"own"}, launch
    assert [one["pid"] for one in launch["done"]["going_on"]] == [bash.pid]
    assert code == 1, launch
