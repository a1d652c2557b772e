"""The comparison of the ranks for people: who stands where, and who stands elsewhere than the others."""

from __future__ import annotations

from rich.console import RenderableType

from hangdoc.model.diagnosis import Diagnosis, StackClass, StackMotion
from hangdoc.report.rows import bullet
from hangdoc.report.words import rank_text

MOST_NAMED = 4
"""Ranks of one class that are named. Arbitrary: what fits into a line."""

MOST_FRAMES = 3
"""Frames shown of each class; the JSON has more. Arbitrary: the wait and who asked for it."""

MOTION_WORDS: dict[StackMotion, str] = {
    "frozen": "stands still",
    "moving": "moves",
    "seen-once": "seen once",
}


def ranks_compared(diagnosis: Diagnosis) -> list[RenderableType]:
    """Return a line for each class of stacks; nothing where there is only one rank to compare."""
    if sum(len(one.pids) for one in diagnosis.stack_classes) < 2:
        return []
    names = {one.pid: rank_text(one.role, one.rank) for one in diagnosis.processes if one.pid is not None}
    return [_class(one, names) for one in diagnosis.stack_classes]


def _class(one: StackClass, names: dict[int, str]) -> RenderableType:
    named = ", ".join(f"{names.get(pid, 'process')} {pid}" for pid in one.pids[:MOST_NAMED])
    more = f" and {len(one.pids) - MOST_NAMED} more" if len(one.pids) > MOST_NAMED else ""
    place = " < ".join(one.frames[:MOST_FRAMES]) or "no common frame"
    line = f"{named}{more}, {MOTION_WORDS[one.motion]}: {place}"
    return bullet(">", f"{line}  (the odd one out)", "bold red") if one.odd else bullet("-", line)
