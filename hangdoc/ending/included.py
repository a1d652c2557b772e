"""What `--include PID` adds: that process and what it started, never a part of another launch."""

from __future__ import annotations

import os
from collections.abc import Iterable

from hangdoc.errors import ExitCode, HangdocError
from hangdoc.launch.complaints import check_pid, shown
from hangdoc.launch.forest import Forest

NAMED = "named with --include"

FOLLOWED = {"program", "wrapper"}
"""Kinds whose children end with them: what a shell, a notebook or a test runner started is many things."""


def included(forest: Forest, pid: int) -> dict[int, tuple[str, ...]]:
    """Return the process that was named and its descendants, each with its reasons. HangdocError when it may not be.

    Rule: who names a process takes what it started with it, for nobody else would look after that; but another
    engine's launch that has its launcher is ended as a whole, by itself, or not at all.
    """
    entry = forest.table.get(pid)
    if entry is None:
        check_pid(pid, forest.proc, os.getpid())  # a thread has a number like a process, but is in no list of them
        raise HangdocError(f"there is no process {pid} to include", "look at the pid again", ExitCode.UNOBSERVABLE)
    if pid in forest.never or pid == 1 or entry.kind in {"kernel", "manager"}:
        what = "hangdoc itself or its caller" if pid in forest.never else "part of the system"
        raise HangdocError(f"{pid} ({shown(entry.title)}) is {what}", "it is never ended: leave --include out for it")
    found: dict[int, tuple[str, ...]] = {pid: (NAMED,)}
    waiting = [entry]
    while waiting:
        one = waiting.pop()
        for child in forest.children.get(one.pid, []) if one.kind in FOLLOWED else []:
            if child.pid not in found and child.pid not in forest.never and forest.parent(child) is not None:
                found[child.pid] = (f"child of {one.pid}, {NAMED}",)
                waiting.append(child)
    return found


def refuse_other_launches(forest: Forest, root: int, pids: Iterable[int]) -> None:
    """Raise HangdocError (2) when one of these is of another launch than that of root, and that has its launcher."""
    for pid in pids:
        home = forest.home(forest.table[pid])
        if home is None or home.root == root or not forest.is_engine_root(home.root):
            continue
        if forest.has_launcher(home.root):
            raise HangdocError(
                f"{pid} ({shown(forest.table[pid].title)}) is of another launch, that of {home.root}, "
                f"not of the launch {root}: nothing was touched",
                f"end that one by itself: hangdoc kill-clean {home.root}",
            )
