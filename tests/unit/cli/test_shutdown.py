"""A launch that ends while it is watched: in order, with a failure, or killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hangdoc_probes import exits
from tests.unit.cli.commands import LONGEST_S, program, python, rounds_in, run, start, wait_until

ENDS = """
import ctypes, os, signal, sys
ranks = []
def rank(code):
    heard, said = os.pipe()
    pid = os.fork()
    if pid:
        os.close(heard)
        ranks.append((pid, said))
        return
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
    for other in [said, *(end for _, end in ranks)]: os.close(other)
    os.read(heard, 1)
    os._exit(code)
how = "%s"
rank(0)
rank(3 if how == "a rank fails" else 0)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
print("x", flush=True)
if how == "asked": signal.pause()
sys.stdin.readline()
for pid, said in ranks:
    os.close(said)
    os.waitpid(pid, 0)
if how == "it fails": os._exit(1)
"""
"""A launcher and two ranks, which leave when their pipe closes; the launcher waits for each and leaves last."""

KEEPS_STATUS = "6.15 on" not in str(exits.check(Path("/proc")))


def watched_to_its_end(how: str, trace: Path) -> tuple[dict[str, Any], int]:
    with program(*python(ENDS % how)) as launch:
        following = start("watch", str(launch.pid), "--until", "exit", "--json", "--record", str(trace))
        wait_until(lambda: rounds_in(trace) > 1)
        if how == "asked":
            launch.terminate()
        elif how == "killed":
            launch.kill()
        else:
            launch.communicate(b"go\n", timeout=LONGEST_S)
        launch.wait(LONGEST_S)
        said, _ = following.communicate(timeout=LONGEST_S)
    return json.loads(said.splitlines()[-1]), following.returncode


@pytest.mark.parametrize(
    ("how", "healthy"),
    [("in order", True), ("asked", True), ("a rank fails", False), ("it fails", False), ("killed", False)],
)
def test_the_end_of_a_launch(how: str, healthy: bool, tmp_path: Path) -> None:
    """In order, or asked to by SIGTERM, it is healthy in phase shutdown; after a failure or SIGKILL it is not."""
    trace = tmp_path / "end.hangtrace"
    document, code = watched_to_its_end(how, trace)
    accepted = {"healthy"} if healthy and KEEPS_STATUS else {"undetermined", "crashed"}
    assert document["verdict"] in accepted, document["hypotheses"]
    assert document["phase"] == "shutdown"
    assert code == (1 if document["verdict"] == "crashed" else 0)
    replayed = json.loads(run("replay", str(trace), "--json").out)
    assert [replayed[field] for field in ("verdict", "grade", "hypotheses")] == [
        document[field] for field in ("verdict", "grade", "hypotheses")
    ]
