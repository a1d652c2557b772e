"""Gives the events of a log that came without a time one: a bar's own count of time proves when it was drawn."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from hangdoc.features.clock import later
from hangdoc.model.log import LogEvent


def timed(events: Iterable[LogEvent]) -> tuple[LogEvent, ...]:
    """Return the events in their order, those without a time with that of the last one before.

    A bar without one was drawn no earlier than its own count of time after the last line before its first drawing, or,
    where its beginning was not kept, after its step's first line. Bars draw with carriage returns, and have no time.
    """
    found: list[LogEvent] = []
    begun: dict[str, tuple[str, float]] = {}
    stamp = ""
    unique = {(event.offset, event.name): event for event in events}
    for event in sorted(unique.values(), key=lambda event: event.offset):
        own = event.stamp
        if not own and "elapsed_s" in event.numbers:
            own = _drawn(event, begun, found, stamp)
        stamp = own or stamp
        found.append(event if event.stamp or not stamp else replace(event, stamp=stamp))
    return tuple(found)


AT_ITS_BEGINNING_S = 1.0
"""What a bar counts when it is drawn first. Arbitrary: it counts in whole seconds."""


def _drawn(bar: LogEvent, begun: dict[str, tuple[str, float]], before: list[LogEvent], stamp: str) -> str:
    """Return when a bar was drawn at the earliest; begun: by each bar's name a time and what it counted then."""
    elapsed_s = bar.numbers["elapsed_s"]
    since = begun.get(bar.name)
    if since is None or elapsed_s < since[1]:
        step = [one.stamp for one in before if one.phase == bar.phase and one.name.endswith("begin")]
        is_first = elapsed_s <= AT_ITS_BEGINNING_S or not step or since is not None
        since = begun[bar.name] = (stamp, elapsed_s) if is_first else (step[0], 0.0)
    drawn = later(since[0], elapsed_s - since[1])
    return max(drawn, stamp) if len(stamp) == len(_WHOLE) else drawn or stamp


_WHOLE = "2026-01-02 03:04:05"
"""The writing in which times are in the order of their text."""
