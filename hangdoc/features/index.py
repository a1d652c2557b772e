"""Find samples in a trace: by probe and process, within a window of rounds."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TypeVar

from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known, Missing
from hangdoc.model.snapshot import Sample, Snapshot, tally_of
from hangdoc.trace.records import Trace

P = TypeVar("P")


@dataclass(frozen=True)
class Window:
    """Rounds first to last of a trace, both included; start and end are CLOCK_BOOTTIME."""

    first: int
    last: int
    start_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        """Length of the window."""
        return (self.end_ns - self.start_ns) / 1e9


def window_of(trace: Trace, first: int, last: int) -> Window:
    """Return the window of rounds first to last (positions in trace.snapshots)."""
    return Window(first, last, trace.snapshots[first].at_ns, trace.snapshots[last].at_ns)


class Index:
    """Every sample of a trace by (probe, process), in the order of their rounds, and in a round of their times.

    Where a round has lost a sample of a probe (see Snapshot.tally), what is left of that probe in a window with this
    round is as if it had been refused: the reading that is lost may be the one that speaks against all others.
    """

    def __init__(self, trace: Trace) -> None:
        self._samples: dict[tuple[str, ProcessKey | None], list[tuple[int, Sample]]] = defaultdict(list)
        self._losses: dict[str, list[int]] = defaultdict(list)
        for position, snapshot in enumerate(trace.snapshots):
            for sample in snapshot.samples:
                self._samples[sample.probe, sample.process].append((position, sample))
            self._count(position, snapshot)
        for samples in self._samples.values():
            # A round may have two dumps of a process; in which order they lie in it means nothing.
            samples.sort(key=lambda one: (one[0], one[1].taken_ns))
        self._probes = frozenset(probe for probe, _ in self._samples)

    def _count(self, position: int, snapshot: Snapshot) -> None:
        if snapshot.tally and sum(snapshot.tally.values()) > len(snapshot.samples):
            there = tally_of(snapshot.samples)
            for probe, count in snapshot.tally.items():
                if there.get(probe, 0) < count:
                    self._losses[probe].append(position)

    def has_lost(self, probe: str, window: Window) -> bool:
        """Tell whether a sample of a probe is lost from a window."""
        return any(window.first <= position <= window.last for position in self._losses.get(probe, ()))

    def known(self, probe: str, process: ProcessKey | None, kind: type[P], window: Window) -> list[tuple[int, P]]:
        """Return (taken_ns, payload) of every reading of one probe that succeeded within the window."""
        if self.has_lost(probe, window):
            return []
        return [
            (sample.taken_ns, sample.reading.value)
            for position, sample in self._samples.get((probe, process), ())
            if window.first <= position <= window.last
            and isinstance(sample.reading, Known)
            and isinstance(sample.reading.value, kind)
        ]

    def refused_at_an_end(self, probe: str, process: ProcessKey | None, window: Window) -> bool:
        """Tell whether a reading failed in the first or in the last round of a window."""
        return any(
            position in {window.first, window.last} and isinstance(sample.reading, Missing)
            for position, sample in self._samples.get((probe, process), ())
        )

    def failed_last(self, probe: str, process: ProcessKey | None, window: Window) -> bool:
        """Tell whether the newest reading of a window is one that failed."""
        found = [one for at, one in self._samples.get((probe, process), ()) if window.first <= at <= window.last]
        return bool(found) and isinstance(found[-1].reading, Missing)

    def was_taken(self, probe: str) -> bool:
        """Tell whether the trace has any reading of a probe, failed ones included: older traces lack newer probes."""
        return probe in self._probes or probe in self._losses

    def missing(self, probe: str, process: ProcessKey | None, window: Window) -> Missing:
        """Return why there is no reading: the last failure in the window, or that the probe was not taken at all."""
        for position, sample in reversed(self._samples.get((probe, process), ())):
            if window.first <= position <= window.last and isinstance(sample.reading, Missing):
                return sample.reading
        if self.has_lost(probe, window):
            return Missing(probe, "not-taken", "a reading of the observed time is lost from the trace")
        return Missing(probe, "not-taken", "the probe took no reading in the observed time")

    def failures(self) -> list[tuple[ProcessKey | None, Missing]]:
        """Return the last reading of each probe and process where that one failed, sorted."""
        last = {key: samples[-1][1] for key, samples in self._samples.items()}
        failed = [
            (process, sample.reading) for (_, process), sample in last.items() if isinstance(sample.reading, Missing)
        ]
        return sorted(failed, key=lambda row: (row[1].probe, row[0] or ProcessKey(0, 0)))
