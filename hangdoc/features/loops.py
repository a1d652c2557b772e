"""Whether a thread's stacks, seen several times, all lie inside one function that does not return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hangdoc.features.frames import is_file
from hangdoc.model.stack import Frame, Stack

MOST_CALLEES = 2
"""Frames above the looping function: a loop that reads an attribute or calls a predicate has one or two; work that
gets on (building a model, loading, tracing) goes deeper and through different functions. Arbitrary between 2 and the
10 and more that loaders showed."""


_ASKS_FOR_FILES = ("pathlib.py", "pathlib/_local.py", "pathlib/__init__.py", "genericpath.py", "posixpath.py")
"""Python's own files whose functions put paths together and ask whether they are there: whoever called them loops."""


@dataclass(frozen=True)
class Loop:
    """A function in which every stack lies. frame: at its newest line; moves: the stacks are not all the same."""

    frame: Frame
    lines: int
    moves: bool


def loop_of(stacks: Sequence[Stack]) -> Loop | None:
    """Return the function that all stacks (innermost frame first) lie in, or None when they lie in no single one.

    Rule: go inwards from the outermost frame for as long as every stack has the same frame at the same line; the
    frame where they part, if it is the same function at different lines, or else the last common one, is the
    function; every stack may have at most MOST_CALLEES frames inside it, and the function may stand in it once: one
    that calls itself is a computation. Why it works: a function that is left and
    called again is reached through different lines of its caller sooner or later, and work goes deep. Fails for a
    long computation in plain Python, which nothing from outside can tell from a loop. Frames of Python's own library
    that ask for files are part of the line that called them, however deep they go.

    >>> loop_of([(Frame("f", "a.py", 3), Frame("main", "a.py", 9)), (Frame("f", "a.py", 4), Frame("main", "a.py", 9))])
    Loop(frame=Frame(function='f', file='a.py', line=4), lines=2, moves=True)
    """
    if not stacks or not all(stacks):
        return None
    moves, stacks = len(set(stacks)) > 1, [without_questions(stack) for stack in stacks]
    depth = _common_depth(stacks)
    if all(len(stack) > depth for stack in stacks) and len({_function(stack[-depth - 1]) for stack in stacks}) == 1:
        depth += 1  # they part inside this function
    if depth == 0 or any(len(stack) - depth > MOST_CALLEES for stack in stacks):
        return None
    frames = [stack[-depth] for stack in stacks]
    if any(sum(_function(frame) == _function(frames[-1]) for frame in stack) > 1 for stack in stacks):
        return None
    return Loop(frames[-1], len({frame.line for frame in frames}), moves)


def without_questions(stack: Stack) -> Stack:
    """Leave out the innermost frames that only ask for files.

    >>> without_questions((Frame("stat", "lib/python3.11/pathlib.py", 1), Frame("look_for", "a.py", 3)))
    (Frame(function='look_for', file='a.py', line=3),)
    """
    inner = next((at for at, frame in enumerate(stack) if not _asks(frame)), 0)
    return stack[inner:]


def _asks(frame: Frame) -> bool:
    return any(is_file(frame.file, file) for file in _ASKS_FOR_FILES)


def _common_depth(stacks: Sequence[Stack]) -> int:
    depth = 0
    for frames in zip(*(reversed(stack) for stack in stacks), strict=False):
        if len(set(frames)) > 1:
            break
        depth += 1
    return depth


def _function(frame: Frame) -> tuple[str, str]:
    return frame.function, frame.file
