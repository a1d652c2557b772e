"""Starting a launch: what it gets, and what is held of it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from hangdoc.errors import HangdocError
from hangdoc.launch.marker import VARIABLE, read_marker
from hangdoc.launch.start import Order, start
from tests.unit.unattended.launches import DIES_WITH_HANGDOC

TELLS = """
import json, os, sys
told = {"argv": sys.argv[1:], "cwd": os.getcwd(), "session": os.getsid(0), "pid": os.getpid(), "env": dict(os.environ)}
print(json.dumps(told), flush=True)
sys.exit(5)
"""


def order(output: Path, **changes: object) -> Order:
    return Order((sys.executable, "-ISc", TELLS, "a b", "--c"), output=output, **changes)  # type: ignore[arg-type]


def test_what_it_gets(tmp_path: Path) -> None:
    """Command, directory, environment with the marker, session and output are as ordered."""
    log = tmp_path / "log"
    log.write_text("before\n")
    started = start(order(log, cwd=tmp_path, environment={"A": "1"}, own_session=True))
    code = started.bury()
    before, line = log.read_text().splitlines()
    told = json.loads(line)
    assert (code, before, told["argv"], told["cwd"]) == (5, "before", ["a b", "--c"], str(tmp_path))
    assert {name: told["env"][name] for name in ("A", VARIABLE)} == {"A": "1", VARIABLE: started.marker}
    assert told["session"] == told["pid"] == started.pid
    assert "PATH" not in told["env"]


def test_without_orders_it_is_as_hangdoc(tmp_path: Path) -> None:
    """It has hangdoc's session, directory and environment."""
    started = start(order(tmp_path / "log"))
    started.bury()
    told = json.loads((tmp_path / "log").read_text())
    assert (told["session"], told["cwd"]) == (os.getsid(0), str(Path.cwd()))
    assert {**told["env"], **os.environ, VARIABLE: started.marker} == told["env"]


def test_it_is_held_and_marked() -> None:
    """It is held by descriptor, known by start time and by its marker, and two launches have different ones."""
    waits = Order((sys.executable, "-ISc", f"{DIES_WITH_HANGDOC}import signal; signal.pause()"))
    first, second = start(waits), start(waits)
    try:
        assert first.marker != second.marker
        assert [read_marker(Path("/proc"), one.handle.key) for one in (first, second)] == [first.marker, second.marker]
    finally:
        first.process.kill()
        second.process.kill()
        assert (first.bury(), second.bury()) == (137, 137)


def test_an_end_is_seen_before_it_is_buried() -> None:
    """Who has ended stays a zombie until it is buried, so that its exit status can be read by others."""
    started = start(Order(("/bin/sh", "-c", "kill -TERM $$")))
    assert started.handle.key.pid == started.pid
    os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOWAIT)
    assert started.has_ended()
    assert started.has_ended()
    assert started.bury() == 128 + 15


@pytest.mark.parametrize("changes", [{"cwd": Path("/no/such/place")}, {"output": Path("/no/such/file")}])
def test_orders_that_cannot_be_carried_out(changes: dict[str, Path]) -> None:
    """A directory or an output that is not there is an error that names it, and nothing is started."""
    with pytest.raises(HangdocError, match="/no/such") as caught:
        start(Order(("true",), **changes))  # type: ignore[arg-type]
    assert "nothing was started" in caught.value.message
