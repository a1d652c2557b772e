"""Whether a thread went round a loop of Python bytecode, by the instructions that it was seen at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hangdoc.features.frames import bare_name
from hangdoc.model.places import Places
from hangdoc.model.stack import Frame

FEWEST_READINGS = 2
"""Readings, some seconds apart, that all have to show it: a thread that leaves its loop is in another frame then."""

FEWEST_TURNS = 3
"""Times that a thread has to have gone back: once may be the end of one loop before another begins. Arbitrary."""


@dataclass(frozen=True)
class Rounds:
    """A thread that goes round. turns: how often it was seen to have gone back; looks: how often it was looked at."""

    turns: int
    looks: int


def goes_round(readings: Sequence[Places], tid: int, frame: Frame) -> Rounds | None:
    """Return how a thread went round in a frame's function; None when the readings do not show it.

    Rule: in every reading all looks show one and the same innermost frame, of this function, at more than one
    instruction, and some of them at an earlier instruction than the look before. Why it works: a thread inside one
    native call stays at the instruction of that call; one that runs through work calls functions, whose frames come in
    between. It proves that a loop of Python code runs, not that it has no end: a computation looks the same, so that
    the caller has to know that somebody waits for it.
    """
    seen = [thread for reading in readings for thread in reading.threads if thread.tid == tid]
    turns, looks = sum(one.turns for one in seen), sum(one.looks for one in seen)
    if len(seen) < FEWEST_READINGS or turns < FEWEST_TURNS:
        return None
    for one in seen:
        there = one.function == bare_name(frame.function) and one.file == frame.file
        if not there or one.same_frame < one.looks or one.places < 2:
            return None
    return Rounds(turns, looks)


def never_ends(readings: Sequence[Places], tid: int) -> bool:
    """Tell whether a thread was in a loop that is nothing but a jump back, in all readings: no code of it ends that."""
    seen = [thread for reading in readings for thread in reading.threads if thread.tid == tid]
    return len(seen) >= FEWEST_READINGS and all(one.endless for one in seen)


def stands_in_one_call(readings: Sequence[Places], tid: int) -> bool:
    """Tell whether a thread stood at one instruction in all looks of all readings: one native call takes its time.

    It fails for a thread that did not get a CPU during every reading, which takes some 30 ms.
    """
    seen = [thread for reading in readings for thread in reading.threads if thread.tid == tid]
    return len(seen) >= FEWEST_READINGS and all(one.places == 1 and not one.endless for one in seen)
