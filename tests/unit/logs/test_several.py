"""Several files: nodes of one launch, several servers, and launches of other days in one directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangdoc.diagnosis import diagnose
from hangdoc.logs.read import Wishes, read
from hangdoc.model.diagnosis import Diagnosis

STEPS = ("Init torch distributed begin.", "Load weight begin. avail mem=7 GB", "Load weight end. type=X",
         "Memory pool end. avail mem=7 GB")  # fmt: skip
READY = "[2026-11-29 12:01:00] The server is fired up and ready to roll!\n"


def start(ranks: list[str], steps: int, day: str = "2026-11-29") -> str:
    rows = [f"[{day} 12:00:00] server_args=ServerArgs(model_path='m')\n"]
    for number, step in enumerate(STEPS[:steps]):
        rows += [f"[{day} 12:00:{10 + number}{rank and ' ' + rank}] {step}\n" for rank in ranks]
    return "".join(rows)


def of(directory: Path, **files: str) -> Diagnosis:
    for name, text in files.items():
        (directory / f"{name}.log").write_text(text)
    return diagnose(read([directory], Wishes()), "log")


def test_a_node_that_is_behind(tmp_path: Path) -> None:
    """A second node that stands is not hidden by a first one that says it is ready; its phase is the launch's."""
    found = of(tmp_path, node0=start(["TP0", "TP1"], 4) + READY, node1=start(["TP2", "TP3"], 2))
    assert (found.verdict, found.phase) == ("undetermined", "weight-load")
    assert found.headline.startswith("NODE1 TP2 and 1 more have not come as far as the others")


def test_nodes_that_are_all_there(tmp_path: Path) -> None:
    """Only the first node says that it is ready; the others have made every step that all ranks make."""
    found = of(tmp_path, node0=start(["TP0", "TP1"], 4) + READY, node1=start(["TP2", "TP3"], 4))
    assert (found.verdict, found.phase) == ("healthy", "ready")


@pytest.mark.parametrize("ranks", [[""], ["TP0", "TP1"]])
@pytest.mark.parametrize("steps", [0, 2])
def test_two_servers(ranks: list[str], steps: int, tmp_path: Path) -> None:
    """Of two servers with the same ranks the one that stands counts."""
    found = of(tmp_path, prefill=start(ranks, 4) + READY, decode=start(ranks, steps))
    assert (found.verdict, found.phase) == ("undetermined", "weight-load" if steps else "launch")


def test_servers_of_two_kinds(tmp_path: Path) -> None:
    """A server that is ready is behind nobody, although another one has a step more."""
    capture = "[2026-11-29 12:00:40 TP0] Capture cuda graph end. Time elapsed: 7 s\n"
    found = of(tmp_path, prefill=start(["TP0"], 4) + READY, decode=start(["TP0"], 4) + capture + READY)
    assert (found.verdict, found.phase) == ("healthy", "ready")


def test_a_failure_of_one_server(tmp_path: Path) -> None:
    """Batches of one server do not show that the other one lives."""
    failed = (
        start(["TP0"], 4) + READY + "[2026-11-29 12:03:00 TP0] Scheduler hit an exception: Traceback\nKeyError: 1\n"
    )
    lives = start(["TP0"], 4) + READY + "[2026-11-29 12:09:00 TP0] Decode batch. #running-req: 1, #token: 3\n"
    found = of(tmp_path, server0=lives, server1=failed)
    assert (found.verdict, [one.rank for one in found.culprits]) == ("crashed", [{"server": 1, "tp": 0}])


def test_launches_of_other_days(tmp_path: Path) -> None:
    """A file that ended before another one began is an older launch, as in one file the last one is the patient."""
    old = start(["TP0"], 2, "2026-11-28") + "[2026-11-28 12:03:00 TP0] Scheduler hit an exception: x\n"
    assert of(tmp_path, monday=old, tuesday=start(["TP0"], 4) + READY).verdict == "healthy"
