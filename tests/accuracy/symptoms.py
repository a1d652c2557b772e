"""Whether a scenario's illness showed while it was looked at, by the kernel's counters and the server's own log."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.patients.vitals import BURNT_RATIO, CLOCK_TICKS
from tests.sglang import guard
from tests.sglang.launches import Launch, LaunchError
from tests.sglang.looks import Look, main_thread
from tests.sglang.scenarios import READY, SPINS, WAKES, Doing


@dataclass(frozen=True)
class Moment:
    """A launch at one moment. ranks: the main thread of each scheduler; members: pids that live."""

    at_s: float
    ranks: Mapping[int, Look]
    members: frozenset[int]


def moment(launch: Launch) -> Moment:
    """Return how a launch is now."""
    ranks = {rank: main_thread(pid) for rank, pid in launch.scheduler_pids().items()}
    return Moment(time.monotonic(), ranks, frozenset(launch.members()))


def not_shown(doings: Sequence[Doing], before: Moment, after: Moment) -> str:
    """Return what of an illness did not show between two moments; "" when all did. doings: of each rank."""
    if not before.members <= after.members:
        return "a member ended during the look"
    for rank, doing in enumerate(doings):
        if rank not in before.ranks or rank not in after.ranks:
            return f"rank {rank} could not be looked at"
        lacks = _lacks(doing, before.ranks[rank], after.ranks[rank], after.at_s - before.at_s)
        if lacks:
            return f"rank {rank} {lacks}"
    return ""


def _lacks(doing: Doing, was: Look, now: Look, seconds: float) -> str:
    burnt = (now.ticks - was.ticks) / CLOCK_TICKS / seconds
    if doing is SPINS:
        return "" if burnt >= BURNT_RATIO else f"used {burnt:.2f} of a core only"
    if burnt > BURNT_RATIO:
        return f"used {burnt:.2f} of a core"
    return "was never woken" if doing is WAKES and now.switches == was.switches else ""


def not_slow(launch: Launch) -> str:
    """Return why a start that was to be slow was none: it was over during the look, or never came to its end."""
    if launch.seen(READY):
        return "it was ready before the look was over"
    try:
        launch.wait_for(READY)
    except LaunchError as error:
        return f"it never came up: {error}"[:300]
    return ""


def not_dead(pid: int) -> str:
    """Return why a member that was killed, and has a parent that never asks, does not show as dead."""
    fields = guard.stat_fields(pid)
    return "" if fields and fields[0] == "Z" else f"pid {pid} is no zombie"
