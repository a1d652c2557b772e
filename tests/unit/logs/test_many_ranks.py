"""Logs of hundreds of ranks: the work grows as their number does, not as its square."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from hangdoc.diagnosis import diagnose
from hangdoc.logs.read import Wishes, read

STEPS = (
    "Init torch distributed begin.",
    "Load weight begin. avail mem=139.13 GB",
    "Load weight end. type=X, dtype=torch.bfloat16, avail mem=5.0 GB",
    "Memory pool end. avail mem=20.03 GB",
)


def log_of(ranks: int) -> str:
    lines = [f"[2026-11-29 10:00:00] server_args=ServerArgs(model_path='M', tp_size={ranks}, port=30000)"]
    lines += [f"[2026-11-29 10:00:3{at} TP{rank}] {text}" for at, text in enumerate(STEPS) for rank in range(ranks)]
    return "\n".join(lines) + "\n"


def calls_of(work: Callable[[], object]) -> int:
    """Count the Python functions that some work calls; a generator counts each time that it goes on."""
    count = 0

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_twice_the_ranks_are_twice_the_work(tmp_path: Path) -> None:
    """Whatever is asked of each rank does not go over all ranks again: from 64 to 256 ranks calls grow in a line."""

    def calls(ranks: int) -> int:
        log = tmp_path / f"{ranks}.log"
        log.write_text(log_of(ranks))
        return calls_of(lambda: diagnose(read([log], Wishes()), "log"))

    calls(2)  # whatever is done only once
    few, some, many = calls(64), calls(128), calls(256)
    assert many - some < 2.5 * (some - few), (few, some, many)
