"""Reads good starts to compare with: a log, a trace, or a directory of either."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hangdoc import discovery
from hangdoc.errors import HangdocError
from hangdoc.features.baseline import Baseline, GoodStart, comparable, good_start
from hangdoc.features.startup import start_of
from hangdoc.logs.read import Wishes, read
from hangdoc.logs.sources import sources
from hangdoc.model.log import LogEvent, LogTail
from hangdoc.model.reading import Known
from hangdoc.trace.records import Trace


def read_baseline(path: Path) -> Baseline:
    """Return the good starts at a path; HangdocError (exit 2) when there is none that became ready."""
    found = [start for source in sources([path]) if (start := _start(source.path, path)) is not None]
    if not found:
        raise HangdocError(
            f"{path} has no good start: nothing in it becomes ready, with times in its lines",
            "give the log of a launch that became ready",
        )
    return Baseline(tuple(found))


def _start(file: Path, given: Path) -> GoodStart | None:
    try:
        trace = read([file], Wishes())
    except HangdocError:
        if file == given:
            raise
        return None  # a file of a directory that is no log
    lines, events = _log_of(trace)
    engine = discovery.engine(trace.header.launch.engine)
    launch = trace.header.launch
    named = launch.engine_version
    start = start_of([event for event in events if event.kind == "milestone"], engine)
    good = good_start(str(file), lines, start)
    return good and replace(
        good,
        version=named.value if isinstance(named, Known) else "",
        engine=launch.engine,
        settings=comparable(trace),
        names=frozenset(event.name for event in events),
    )


def _log_of(trace: Trace) -> tuple[int, list[LogEvent]]:
    tails = [
        sample.reading.value
        for snapshot in trace.snapshots
        for sample in snapshot.samples
        if isinstance(sample.reading, Known) and isinstance(sample.reading.value, LogTail)
    ]
    return max((tail.lines for tail in tails), default=0), [event for tail in tails for event in tail.events]
