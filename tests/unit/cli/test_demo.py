"""The demo: each illness is diagnosed for what it is, and nothing of it outlives the command."""

from __future__ import annotations

import json
import os
import re
import select
import signal
from pathlib import Path

import pytest

from tests.unit.cli.commands import LONGEST_S, run, start, wait_until


@pytest.mark.parametrize("illness", ["busy-wait", "blocked", "slow-start"])
def test_the_right_diagnosis(illness: str) -> None:
    """Each illness gets its own verdict, rank 1 is who has to move, and all processes are gone afterwards."""
    ended = run("demo", illness, "--json")
    document = json.loads(ended.out)
    assert (document["verdict"], ended.code) == (illness, 0), document["headline"]
    pids = [one["pid"] for one in document["processes"]]
    assert len(pids) == 4
    assert [one["pid"] for one in document["culprits"]] == [sorted(pids)[2]]
    assert any(output["path"].endswith("server.log") for output in document["outputs"])
    assert "all 4 processes are gone" in ended.err
    assert not [pid for pid in pids if is_patient(pid)]


def test_nothing_outlives_a_killed_demo() -> None:
    """Even when hangdoc itself is killed, the sick launch ends."""
    demo = start("demo")
    assert demo.stderr is not None
    said = b""
    while b"--once" not in said:
        assert select.select([demo.stderr], [], [], LONGEST_S)[0]
        said += os.read(demo.stderr.fileno(), 4096)
    found = re.search(rb"pid (\d+)", said)
    assert found is not None
    launcher = int(found[1])
    members = [launcher, *children(launcher)]
    assert len(members) == 4
    demo.send_signal(signal.SIGKILL)
    demo.communicate(timeout=LONGEST_S)
    wait_until(lambda: not any(is_patient(pid) for pid in members))


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_patient(pid: int) -> bool:
    try:
        return b"patient.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
