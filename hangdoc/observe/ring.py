"""The trace of an endless observation: its last rounds, and of the older ones only what the reasoning still needs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from threading import Lock
from typing import TypeVar

from msgspec.structs import replace

from hangdoc.features.http import KEPT
from hangdoc.model.ending import Ended
from hangdoc.model.http import Http
from hangdoc.model.link import Links
from hangdoc.model.lock_file import LockFiles
from hangdoc.model.locks import Locks
from hangdoc.model.log import LogEvent, LogTail
from hangdoc.model.process import Process, ProcessKey, Role
from hangdoc.model.reading import Known
from hangdoc.model.snapshot import Sample, Snapshot
from hangdoc.model.stack import Stack, Stacks
from hangdoc.observe.totals import standing_totals
from hangdoc.trace.records import Header, Trace

P = TypeVar("P")

KEPT_ROUNDS = 31
"""Rounds kept whole: 30 s at one a second, the longest window of a single look."""

KEPT_DUMPS = 3
"""Stack dumps of each process kept of what has left the ring: three alike are what a spin is told from."""

OLDEST_DUMP_NS = 240 * 10**9
"""Age at which a dump says nothing any more. Arbitrary: four of the pauses between dumps of a long observation."""

MOST_STACKS = 4096
"""Stacks held before those that no kept round refers to are let go. Arbitrary: some 10 MB."""

MOST_EVENTS = 400
"""Log events kept of what has left the ring. Arbitrary: a start prints fewer than 100 known lines a rank."""

MOST_FORMER = 256
"""Members kept in the roster after their last round has left the ring. Arbitrary: eight nodes' worth of ranks."""

KEPT_KINDS = (LogTail, Stacks, Locks, LockFiles, Http, Ended)
"""What is kept of a round that leaves the ring, beside links and totals."""

_REMEMBERED: frozenset[Role] = frozenset({"launcher", "tokenizer", "scheduler", "detokenizer", "worker", "router"})
"""Compilers and other passing children come and go by the hundred; that they ended is no news."""


class Ring:
    """A trace that stays small. Like a TraceBuilder: `intern` for the probes, `add` each round, `trace()` at any time.

    What leaves the ring lives on in one snapshot before the kept ones: its roster says who was ever a member (so that
    a death is seen for ever), its log readings hold the milestones, it has the last few stack dumps and the last look
    at whom each thread waits for, because these get rare in a long observation, the last answers of the HTTP server,
    how members ended, and the totals that nothing moved from since. It has no clocks, so no rate of CPU time spans it.
    """

    def __init__(self, header: Header, kept_rounds: int = KEPT_ROUNDS) -> None:
        self.header = header
        self.stacks: list[Stack] = []
        self._numbers: dict[Stack, int] = {}
        self._lock = Lock()
        self._kept_rounds = kept_rounds
        self._recent: deque[Snapshot] = deque()
        self._past: Snapshot | None = None

    def intern(self, stack: Stack) -> int:
        """Return the number of the stack in this trace's table. Probes beside the clock call this too."""
        with self._lock:
            number = self._numbers.setdefault(stack, len(self.stacks))
            if number == len(self.stacks):
                self.stacks.append(stack)
            return number

    def add(self, snapshot: Snapshot) -> None:
        """Append one round, or replace the last one when it comes again; fold the oldest when there is no room."""
        if self._recent and self._recent[-1].index == snapshot.index:
            self._recent.pop()
        self._recent.append(snapshot)
        while len(self._recent) > self._kept_rounds:
            self._past = self._folded(self._past, self._recent.popleft())
        if len(self._numbers) > MOST_STACKS:
            self._let_stacks_go()

    def trace(self, rounds: int | None = None) -> Trace:
        """Return the trace as it is now; rounds: as if no more than these had been kept whole."""
        kept, before = list(self._recent), self._past
        for oldest in kept[: -rounds if rounds else 0]:
            before = self._folded(before, oldest)
        whole = kept[-rounds:] if rounds else kept
        snapshots = (*(() if before is None else (before,)), *whole)
        return Trace(header=self.header, stacks=tuple(self.stacks), snapshots=snapshots)

    def _folded(self, before: Snapshot | None, oldest: Snapshot) -> Snapshot:
        totals = standing_totals(self.header, before, oldest)
        folded = past(oldest) if before is None else fold(before, oldest)
        return replace(folded, samples=(*folded.samples, *totals))

    def _let_stacks_go(self) -> None:
        before = () if self._past is None else (self._past,)
        used = {number for snapshot in (*before, *self._recent) for number in _stack_numbers(snapshot)}
        with self._lock:
            # The newest may belong to a reading that is still under way beside the clock.
            spared_from = len(self.stacks) - MOST_STACKS // 2
            for stack, number in list(self._numbers.items()):
                if number < spared_from and number not in used:
                    del self._numbers[stack]
                    self.stacks[number] = ()


def past(snapshot: Snapshot) -> Snapshot:
    """Return what is kept of a round that leaves the ring: roster, log readings, stacks and links."""
    kept = (
        sample
        for sample in snapshot.samples
        if _has_links(sample) or any(_value(sample, kind) is not None for kind in KEPT_KINDS)
    )
    return replace(snapshot, samples=tuple(kept), tally={})


def fold(before: Snapshot, snapshot: Snapshot) -> Snapshot:
    """Return the past with one more round folded in, at that round's time."""
    samples = (*before.samples, *past(snapshot).samples)
    return replace(
        snapshot,
        processes=_roster(before.processes, snapshot.processes),
        samples=(
            *_fold_logs(samples),
            *_last_stacks(samples, snapshot.at_ns),
            *_last_links(samples),
            *_last_of(Locks, samples),
            *_last_of(LockFiles, samples),
            *[sample for sample in samples if _value(sample, Ended) is not None][-MOST_FORMER:],
            *[sample for sample in samples if _value(sample, Http) is not None][-KEPT:],
        ),
    )


def _roster(former: Iterable[Process], present: Iterable[Process]) -> tuple[Process, ...]:
    members: dict[ProcessKey, Process] = {one.key: one for one in former if one.role in _REMEMBERED}
    members |= {one.key: one for one in present}
    kept = list(members.values())[-MOST_FORMER:]
    return tuple(sorted(kept, key=lambda one: one.key))


def _fold_logs(samples: Iterable[Sample]) -> tuple[Sample, ...]:
    """Join the readings of each log file: its events in order, its size and time as last seen."""
    files: dict[str, Sample] = {}
    for sample in samples:
        tail = _value(sample, LogTail)
        if tail is None:
            continue
        begun = _value(files[tail.path], LogTail) if tail.path in files else None
        if begun is not None:
            tail = replace(tail, events=_fewer((*begun.events, *tail.events)), first=begun.first or tail.first)
        files[tail.path] = replace(sample, reading=Known(tail))
    return tuple(files.values())


def _last_stacks(samples: Iterable[Sample], now_ns: int) -> tuple[Sample, ...]:
    dumps: dict[ProcessKey | None, list[Sample]] = {}
    for sample in samples:
        if _value(sample, Stacks) is not None and now_ns - sample.taken_ns <= OLDEST_DUMP_NS:
            dumps.setdefault(sample.process, []).append(sample)
    return tuple(sample for taken in dumps.values() for sample in taken[-KEPT_DUMPS:])


def _last_links(samples: Iterable[Sample]) -> tuple[Sample, ...]:
    """Keep one look of each process: a wait stands when two looks, which may be half a minute apart, show it."""
    return tuple({sample.process: sample for sample in samples if _has_links(sample)}.values())


def _last_of(kind: type[P], samples: Iterable[Sample]) -> tuple[Sample, ...]:
    """Keep one look of each process, for the same reason."""
    return tuple({sample.process: sample for sample in samples if _value(sample, kind) is not None}.values())


def _has_links(sample: Sample) -> bool:
    reading = _value(sample, Links)
    return reading is not None and reading.thorough


def _fewer(events: tuple[LogEvent, ...]) -> tuple[LogEvent, ...]:
    """Of lines that come again and again (batches, progress) the last of each rank says everything."""
    last = {(event.name, *sorted(event.rank.items())): number for number, event in enumerate(events)}
    kept = [
        event
        for number, event in enumerate(events)
        if event.kind not in ("batch", "progress") or last[event.name, *sorted(event.rank.items())] == number
    ]
    return tuple(kept[-MOST_EVENTS:])


def _value(sample: Sample, kind: type[P]) -> P | None:
    value = sample.reading.value if isinstance(sample.reading, Known) else None
    return value if isinstance(value, kind) else None


def _stack_numbers(snapshot: Snapshot) -> Iterable[int]:
    for sample in snapshot.samples:
        reading = _value(sample, Stacks)
        if reading is not None:
            yield from (thread.stack for thread in reading.threads)
