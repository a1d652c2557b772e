"""A trace in slices of one round each: of what kind each was, and since when they are all of one kind."""

from __future__ import annotations

from typing import Literal, TypeAlias

from hangdoc.features.activity import SPIN_DEMAND_RATIO, work
from hangdoc.features.index import Index, Window, window_of
from hangdoc.features.motion import busiest_ratio, flow
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known
from hangdoc.trace.records import Trace

Kind: TypeAlias = Literal["works", "busy", "quiet", "unread"]

EQUAL_SLICES = 3
"""Slices of 1 s that have to be of one kind before a hang may be called. Measured on 26 programs: one slice agreed
with a verdict from 6 s in 97.6 % of the cases, three in 98.7 %; what was left really changed."""


def steady_window(trace: Trace, movers: tuple[ProcessKey, ...]) -> tuple[Window, bool]:
    """Return the window to judge, and whether its slices are all of one kind.

    The longest run of equal slices at the end of the trace, when there are at least EQUAL_SLICES; otherwise the last
    EQUAL_SLICES slices, whatever they are. Slices with no reading end a run.
    """
    kinds = slice_kinds(trace, movers)
    last = len(trace.snapshots) - 1
    run = 0
    for kind in reversed(kinds):
        if kind != kinds[-1] or kind == "unread":
            break
        run += 1
    if run >= EQUAL_SLICES:
        return window_of(trace, last - run, last), True
    return window_of(trace, max(0, last - EQUAL_SLICES), last), False


def slice_kinds(trace: Trace, movers: tuple[ProcessKey, ...]) -> tuple[Kind, ...]:
    """Return the kind of every slice, oldest first: one less than there are rounds."""
    index = Index(trace)
    windows = [window_of(trace, end - 1, end) for end in range(1, len(trace.snapshots))]
    return tuple(_kind(index, movers, window) for window in windows)


def _kind(index: Index, movers: tuple[ProcessKey, ...], window: Window) -> Kind:
    """Return whether any of the processes worked, or any burnt CPU, or all were quiet."""
    busy, read = False, False
    for key in movers:
        flowed = flow(index, key, window)
        if isinstance(flowed, Known) and work(flowed.value) is not None:
            return "works"
        busiest = busiest_ratio(index, key, window)
        if isinstance(busiest, Known):
            read = True
            busy = busy or (busiest.value is not None and busiest.value >= SPIN_DEMAND_RATIO)
    if not read:
        return "unread"
    return "busy" if busy else "quiet"
