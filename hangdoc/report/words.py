"""Small words of the report: durations, sizes, shares, ranks."""

from __future__ import annotations

from collections.abc import Mapping

from hangdoc.model.diagnosis import Grade, OutputState

GRADE_WORDS: dict[Grade, str] = {
    "confirmed": "confirmed",
    "likely": "likely",
    "undetermined": "not certain",
    "ruled-out": "ruled out",
}

OUTPUT_WORDS: dict[OutputState, str] = {
    "flushed": "everything written has arrived",
    "held-back": "text is held back in a buffer of the process; opening /proc/PID/fd shows none of it",
    "nothing-written": "nothing was written yet",
    "pipe-full": "the pipe is full: the writer waits until somebody reads",
    "unknown": "cannot be told",
}

_UNITS = ("KiB", "MiB", "GiB", "TiB")


def duration(seconds: float) -> str:
    """Return a duration at the precision that people use: "4.2 s", "14 min", "3.5 h"."""
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def bytes_text(count: int) -> str:
    """Return a size: "62 bytes", "1.5 MiB"."""
    if count < 1024:
        return f"{count} bytes"
    power = min((count.bit_length() - 1) // 10, len(_UNITS))
    return f"{count / 1024**power:.1f} {_UNITS[power - 1]}"


def ratio(value: float | None) -> str:
    """Return a share of one core; "?" when it was not read."""
    return "?" if value is None else f"{value:.2f}"


def rank_text(role: str, rank: Mapping[str, int]) -> str:
    """Return who it is: "scheduler TP1", "worker", for what has no role "process"."""
    return " ".join(
        ["process" if role == "other" else role, *(f"{axis.upper()}{number}" for axis, number in sorted(rank.items()))]
    )
