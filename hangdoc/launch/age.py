"""Tell which of two processes is the older one, also when both started within one clock tick."""

from __future__ import annotations

from functools import cache, cmp_to_key
from pathlib import Path

from hangdoc.model.process import ProcessKey

PID_MAX = Path("/proc/sys/kernel/pid_max")
"""Where the pids that hangdoc sees start over (proc(5)); since Linux 6.14 each pid namespace has its own."""

USUAL_PIDS = 32_768
"""Its default on a small machine, for where it cannot be read."""

MOST_IN_A_TICK = 1024
"""Pids that are given away within one clock tick (10 ms), threads included. Arbitrary: 100,000 clones a second."""

FIRST_AGAIN = 300
"""Where they start over (kernel/pid.c, RESERVED_PIDS)."""

LEAST_ROUND = 16
"""How many times as many pids there have to be, for "a little further" and "a little before" not to meet. Arbitrary."""


def is_older(one: ProcessKey, other: ProcessKey) -> bool:
    """Say whether a process certainly started before another; False for itself, and where it cannot be decided.

    Rule: start times decide. The kernel tells them in clock ticks; within one tick the pids decide, for they are given
    away in rising order (idr_alloc_cyclic) and start over behind the largest: who comes at most MOST_IN_A_TICK pids
    later is the younger one. It works for who descends from whom, as a parent has its pid before it can have a child,
    and for what was started because something else had ended. It cannot decide where more pids lie between the two, or
    few pids go round; it fails for a pid that was asked for (clone3 with set_tid, as when a checkpoint is restored).
    """
    if one.start_ticks != other.start_ticks:
        return one.start_ticks < other.start_ticks
    pids = _pids() - FIRST_AGAIN
    later = other.pid - one.pid + (pids if other.pid < one.pid else 0)
    return 0 < later <= min(MOST_IN_A_TICK, pids // LEAST_ROUND)


def may_be_older(one: ProcessKey, other: ProcessKey) -> bool:
    """Say whether a process started before another, or cannot be told to have started after it. False for itself."""
    return one != other and not is_older(other, one)


def _compare(one: ProcessKey, other: ProcessKey) -> int:
    if is_older(one, other):
        return -1
    return 1 if is_older(other, one) else one.pid - other.pid


by_age = cmp_to_key(_compare)
"""Sort key for process keys, the oldest first; where it cannot be decided, the smaller pid."""


@cache
def _pids() -> int:
    try:
        return int(PID_MAX.read_text())
    except (OSError, ValueError):
        return USUAL_PIDS
