"""A start moved only where a step or a bar of it is new: other lines that still come are no progress."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangdoc.diagnosis import diagnose
from hangdoc.logs.moment import moment
from hangdoc.logs.read import Wishes, read
from hangdoc.model.diagnosis import Diagnosis

BEGINS = "[2026-11-29 14:00:20 TP{rank}] Init torch distributed begin.\n"
LOADS = "[2026-11-29 14:00:31 TP{rank}] Load weight begin. avail mem=138.13 GB\n"
BAR = "Loading safetensors checkpoint shards:  10% Completed | 4/40 [00:40<06:00, 10.00s/it]\n"
OTHER = "[2026-11-29 14:{minute:02}:00] waiting for the server\n"


def at(paths: list[Path], now: str) -> Diagnosis:
    return diagnose(read(paths, Wishes(now=moment(now))), "log")


@pytest.mark.parametrize("last", ["", BAR])
@pytest.mark.parametrize(("minutes", "verdict"), [(1, "slow-start"), (34, "undetermined")])
def test_other_lines_are_no_progress(last: str, minutes: int, verdict: str, tmp_path: Path) -> None:
    """A step or a bar that stands for half an hour does not move, whoever else writes to its log."""
    log = tmp_path / "server.log"
    step = LOADS.format(rank=0) if last else "[2026-11-29 14:00:55 TP0] Load weight begin. avail mem=138.13 GB\n"
    log.write_text(step + last + "".join(OTHER.format(minute=one) for one in range(1, minutes + 1)))
    found = at([log], f"2026-11-29 14:{minutes:02}:02")
    assert found.verdict == verdict
    assert ("as the bar says" in found.next_steps[0].action) is (bool(last) and verdict == "slow-start")


def test_the_least_advanced_node_counts(tmp_path: Path) -> None:
    """Where one node has come farther and moves, the start does not move while the other one stands."""
    begun = "".join(BEGINS.format(rank=rank) for rank in (0, 1))
    moves = "".join(f"[2026-11-29 14:30:0{rank} TP{rank}] Load weight begin. avail mem=138 GB\n" for rank in (0, 1))
    (tmp_path / "node0.log").write_text(begun + moves)
    (tmp_path / "node1.log").write_text("".join(BEGINS.format(rank=rank) for rank in (2, 3)))
    assert at([tmp_path], "2026-11-29 14:30:03").verdict == "undetermined"
