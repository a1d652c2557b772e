"""What the cheap readings of a launch that was well say against it: from then on it is looked at closely again."""

from __future__ import annotations

from collections import deque

from msgspec.structs import replace

from hangdoc.features.features import mover_keys
from hangdoc.features.slices import EQUAL_SLICES, Kind, slice_kinds
from hangdoc.model.ending import Ended
from hangdoc.model.log import LogTail
from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.reading import Known
from hangdoc.model.snapshot import Snapshot
from hangdoc.model.thread import CpuUse
from hangdoc.trace.records import Trace

PASSING = frozenset({"compiler", "other", "tokenizer"})
"""Roles that come and go in a launch that is well."""

TELLING_EVENTS = frozenset({"milestone", "crash", "watchdog"})
TELLING_STATES = frozenset("DTtZX")
"""A main thread in the kernel's uninterruptible sleep, stopped, traced or dead."""


class Alarm:
    """Compares each round with the last diagnosis; it has to see every round after it.

    Rule: members came or went, one ended, a main thread is in a state that tells, the log says something that is no
    routine, or three slices in a row are of another kind (working, busy, quiet) than those that were judged. Why it
    works: a launch that stops getting on shows one of these in the cheap readings. Fails for one that burnt CPU before
    and now burns it in vain: its stacks tell, which are still read once a minute.
    """

    def __init__(self) -> None:
        self._kind: Kind | None = None
        self._last: deque[Kind] = deque(maxlen=EQUAL_SLICES)
        self._members: frozenset[ProcessKey] = frozenset()

    def judged(self, trace: Trace) -> None:
        """Take the state of a trace that was found well as the one to compare with."""
        self._last.clear()
        self._last.extend(_kinds(trace, EQUAL_SLICES))
        self._kind = self._steady_kind()
        self._members = _vital(trace.snapshots[-1].processes)

    def rings(self, trace: Trace) -> bool:
        """Say whether the newest round gives reason to look closely."""
        newest = trace.snapshots[-1]
        if _vital(newest.processes) != self._members or any(_tells(newest)):
            return True
        self._last.extend(_kinds(trace, 1))
        kind = self._steady_kind()
        return kind is not None and kind != self._kind

    def _steady_kind(self) -> Kind | None:
        kinds = set(self._last)
        return kinds.pop() if len(kinds) == 1 and len(self._last) == EQUAL_SLICES else None


def _vital(processes: tuple[Process, ...]) -> frozenset[ProcessKey]:
    return frozenset(process.key for process in processes if process.role not in PASSING)


def _tells(newest: Snapshot) -> list[bool]:
    values = [sample.reading.value for sample in newest.samples if isinstance(sample.reading, Known)]
    return [
        isinstance(value, Ended)
        or (isinstance(value, CpuUse) and value.stat.state in TELLING_STATES)
        or (isinstance(value, LogTail) and any(event.kind in TELLING_EVENTS for event in value.events))
        for value in values
    ]


def _kinds(trace: Trace, count: int) -> tuple[Kind, ...]:
    """Return of what kind the last slices are."""
    few = replace(trace, snapshots=trace.snapshots[-count - 1 :])
    return slice_kinds(few, mover_keys(trace.snapshots[-1].processes))
