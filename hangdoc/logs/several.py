"""Tells the files of several servers or nodes apart: lines get the number of their file where no name tells a rank."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from hangdoc.features.startup import FILES
from hangdoc.model.engine import Engine
from hangdoc.model.log import LogEvent

NODE, SERVER = FILES
"""Axes of a rank: files of one launch, whose ranks differ, and files of launches that have the same ranks."""

_NUMBER = re.compile(r"(?:node|host|server|replica)[._-]?(?P<number>\d{1,5})")


@dataclass(frozen=True)
class FileLog:
    """The events of one file. name: its path; rank: the one that its name tells, {} for none."""

    name: str
    rank: dict[str, int]
    events: tuple[LogEvent, ...]
    last_stamp: str


def of_last_launch(logs: Sequence[FileLog]) -> list[bool]:
    """Tell for each file whether it is of the newest launch: one that ended before another one began is an old one."""
    begins = [log.events[0].stamp for log in logs if log.events and _begins(log)]
    newest = max((stamp for stamp in begins if len(stamp) == len("2026-01-02 03:04:05")), default="")
    return [not (_begins(log) and len(log.last_stamp) == len(newest) and log.last_stamp < newest) for log in logs]


def _begins(log: FileLog) -> bool:
    return any(event.name == "server-args" for event in log.events)


def told_apart(logs: Sequence[FileLog], engine: Engine) -> list[tuple[LogEvent, ...]]:
    """Return the events of each file, with one more axis in their ranks where several files are of starts.

    Rule: files that have steps of a start and no rank in their names. When two of them have the same ranks, they are
    of two servers, otherwise of two nodes of one launch. The number is the one in the file's name, or its place.
    """
    return [
        log.events if place is None else tuple(replace(e, rank={place[0]: place[1], **e.rank}) for e in log.events)
        for log, place in zip(logs, places(logs, engine), strict=True)
    ]


def places(logs: Sequence[FileLog], engine: Engine) -> list[tuple[str, int] | None]:
    """Return the axis and the number that tell the ranks of each file from those of the others; None: nothing does."""
    steps = {step.name for step in engine.steps}
    starts = [not log.rank and any(event.name in steps for event in log.events) for log in logs]
    if sum(starts) < 2:
        return [None] * len(logs)
    axis = SERVER if _collide([log for log, has in zip(logs, starts, strict=True) if has], engine) else NODE
    return [(axis, number) if has else None for has, number in zip(starts, _numbers(logs), strict=True)]


MOST_TOLD = 16
"""Files that are told with their numbers. Arbitrary."""


def named(logs: Sequence[FileLog], engine: Engine) -> str:
    """Return which file has which number: "NODE0 is a.log, NODE1 is b.log"; nothing where none has one."""
    numbered = [(place, log.name) for log, place in zip(logs, places(logs, engine), strict=True) if place is not None]
    told = [f"{axis.upper()}{number} is {name}" for (axis, number), name in numbered[:MOST_TOLD]]
    return ", ".join(told) + (f", and {len(numbered) - MOST_TOLD} more" if len(numbered) > MOST_TOLD else "")


def _collide(logs: Sequence[FileLog], engine: Engine) -> bool:
    common = {step.name for step in engine.steps if step.every_rank}
    ranks = [{tuple(sorted(e.rank.items())) for e in log.events if e.name in common} for log in logs]
    return sum(len(one) for one in ranks) > len(set().union(*ranks))


def _numbers(logs: Sequence[FileLog]) -> list[int]:
    found = [_NUMBER.search(log.name.rsplit("/", 1)[-1].lower()) for log in logs]
    told = [int(match["number"]) for match in found if match is not None]
    return told if len(set(told)) == len(logs) else list(range(len(logs)))
