"""A server that was told to end: that is said, and requests that it still waits for are open."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangdoc.diagnosis import diagnose
from hangdoc.logs.read import Wishes, read

READY = "[2026-11-29 14:00:00] The server is fired up and ready to roll!\n"
TOLD = "[2026-11-29 14:03:20] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n"
LEFT = "[2026-11-29 14:{minute:02}:20] Gracefully exiting... Remaining number of requests {left}. Remaining rids=[].\n"


@pytest.mark.parametrize("end", ["[2026-11-29 14:05:00] INFO:     Shutting down\n", "exited with code 143\n"])
def test_it_is_said(end: str, tmp_path: Path) -> None:
    """An end in order is healthy, and the headline says that it was told to end."""
    (tmp_path / "server.log").write_text(READY + end)
    found = diagnose(read([tmp_path / "server.log"], Wishes()), "log")
    assert found.verdict == "healthy"
    assert "told to end" in found.headline


@pytest.mark.parametrize(("left", "verdict"), [(0, "healthy"), (1, "undetermined")])
def test_a_drain_that_does_not_end(left: int, verdict: str, tmp_path: Path) -> None:
    """While requests are left nobody knows whether it ends; the headline says how many, and after how long."""
    lines = "".join(LEFT.format(minute=minute, left=left) for minute in range(4, 20))
    (tmp_path / "server.log").write_text(READY + TOLD + lines)
    found = diagnose(read([tmp_path / "server.log"], Wishes()), "log")
    assert found.verdict == verdict
    assert ("16.0 min later it still waited for 1 of its requests" in found.headline) is (left == 1)


@pytest.mark.parametrize(
    ("ranks", "said"),
    [((0, 1, 3), "TP2 has not said and 3 have"), ((0,), "TP1, TP2, TP3 have not said and 1 have"), (range(4), "")],
)
def test_a_missing_rank_is_in_the_headline(ranks: tuple[int, ...], said: str, tmp_path: Path) -> None:
    """Who has not said the last step that each rank says is named first, even where it printed nothing at all."""
    begun = "[2026-11-29 14:00:00] server_args=ServerArgs(model_path='m', tp_size=4, port=30000)\n"
    lines = "".join(f"[2026-11-29 14:00:20 TP{rank}] Init torch distributed begin.\n" for rank in ranks)
    (tmp_path / "server.log").write_text(begun + lines)
    found = diagnose(read([tmp_path / "server.log"], Wishes()), "log")
    assert found.verdict == "undetermined"
    assert (said in found.headline) if said else ("not said" not in found.headline)
