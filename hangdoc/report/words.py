"""Small words of the report: durations, sizes, shares, ranks."""

from __future__ import annotations

from collections.abc import Mapping

from hangdoc.model.diagnosis import Grade, OutputState, Verdict

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


VERDICT_MEANINGS: dict[Verdict, str] = {
    "busy-wait": "Somebody in the launch burns CPU or GPU time, and nothing comes of it.",
    "blocked": "Somebody waits for something that does not come, and nothing in the launch moves.",
    "hung": "Nothing moves any more. Which kind of hang it is cannot be told from what was given.",
    "crashed": "A process died or failed. Whoever is left waits for it in vain.",
    "slow-start": "It is still starting, and it moves. To wait is right.",
    "healthy": "Nothing is wrong.",
    "undetermined": "What was read is not enough for an answer. What is missing stands below.",
}
"""What a verdict means to somebody who never saw one."""

GRADE_MEANINGS: dict[Grade, str] = {
    "confirmed": "Every sign that it needs was seen, others support it, and nothing speaks against it.",
    "likely": "Every sign that it needs was seen. What would make it certain was not.",
    "undetermined": "Too little was read to be sure.",
    "ruled-out": "Something was seen that speaks against it.",
}
"""How sure a grade is."""
