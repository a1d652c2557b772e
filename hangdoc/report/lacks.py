"""Missing readings, put together: the same reason for many processes is one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hangdoc.model.diagnosis import MissingReading
from hangdoc.model.reading import Reason

MOST_PIDS = 6
"""Pids named in one line. Arbitrary: what fits beside the sentence."""

REASON_WORDS: dict[Reason, str] = {
    "denied": "permission denied",
    "gone": "the process was gone",
    "timeout": "no answer in time",
    "unsupported": "not supported here",
    "not-installed": "not installed",
    "not-taken": "not taken",
    "not-in-input": "not in the input",
    "failed": "failed",
}


@dataclass(frozen=True)
class Lack:
    """One line: what is missing and why, and what would change that ("" for nothing)."""

    sentence: str
    remedy: str


def grouped(missing: Iterable[MissingReading]) -> list[Lack]:
    """Return one entry for each probe, reason and remedy, in the order in which they first came."""
    groups: dict[tuple[str, Reason, str], list[MissingReading]] = {}
    for one in missing:
        groups.setdefault((one.probe, one.reason, one.remedy), []).append(one)
    return [_lack(members) for members in groups.values()]


def of_a_log(missing: Iterable[MissingReading]) -> list[Lack]:
    """Return the same for a log, which lacks nearly everything of every process: one entry for each remedy."""
    groups: dict[tuple[Reason, str], list[MissingReading]] = {}
    for one in missing:
        groups.setdefault((one.reason, one.remedy), []).append(one)
    return [_together(members) if len(members) > 1 else _lack(members) for members in groups.values()]


def _together(members: Sequence[MissingReading]) -> Lack:
    probes = ", ".join(dict.fromkeys(one.probe for one in members))
    return Lack(f"{REASON_WORDS[members[0].reason]}: {len(members)} readings ({probes})", members[0].remedy)


def _lack(members: Sequence[MissingReading]) -> Lack:
    first = members[0]
    details = {one.detail for one in members}
    pids = sorted({one.pid for one in members if one.pid is not None})
    sentence = f"{first.probe}{_of(pids)}: {REASON_WORDS[first.reason]}"
    if len(details) == 1 and first.detail:
        sentence += f" ({first.detail})"
    return Lack(sentence, first.remedy)


def _of(pids: Sequence[int]) -> str:
    if not pids:
        return ""
    named = ", ".join(str(pid) for pid in pids[:MOST_PIDS])
    more = f" and {len(pids) - MOST_PIDS} more" if len(pids) > MOST_PIDS else ""
    return f" of pid {named}{more}"
