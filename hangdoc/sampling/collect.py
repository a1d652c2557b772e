"""Observe a launch: round by round, every probe once, each within its own limits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Self

from msgspec.structs import replace

from hangdoc.model.process import Process
from hangdoc.model.snapshot import Sample, Snapshot, tally_of
from hangdoc.sampling.overhead import Meter, Overhead
from hangdoc.sampling.pace import Pace
from hangdoc.sampling.probe import Context, Probe, Round
from hangdoc.sampling.roster import PatientRoster
from hangdoc.sampling.schedule import Ticker
from hangdoc.sampling.slot import BackgroundSlot, ForegroundSlot
from hangdoc.sampling.taker import Taker

INTERVAL_S = 1.0
ROSTER_S = 1.0
"""How long a round waits for the list of members; arbitrary."""
LATE_S = 1.0
"""How long the end of an observation waits for takes in progress; arbitrary."""


class Observer:
    """The clock of one observation: a context manager, used once.

    refresh: the launch's members now. rounds() yields one snapshot a round; finish() the last one again, with the
    samples that arrived after it. gone: no member is left, which ends the rounds. pace: to be slowed and hurried.
    """

    def __init__(
        self,
        context: Context,
        probes: Sequence[Probe],
        refresh: Callable[[], tuple[Process, ...]],
        interval_s: float = INTERVAL_S,
        pace: Pace | None = None,
    ) -> None:
        self.gone = False
        self._roster = PatientRoster(refresh, context.launch.processes, ROSTER_S)
        self._interval_s = interval_s
        self.pace = pace or Pace()
        self._meter = Meter()
        of_rounds = [probe for probe in probes if not probe.on_request]
        self._foreground = [ForegroundSlot(probe, context) for probe in of_rounds if not probe.background]
        self._background = [BackgroundSlot(probe, context) for probe in of_rounds if probe.background]
        self._on_request = {probe.name: Taker(probe, context) for probe in probes if probe.on_request}
        self._stop = threading.Event()
        self._last: Snapshot | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def rounds(self) -> Iterator[Snapshot]:
        """Yield a snapshot a round, at monotonic deadlines, until the launch is gone or stop() is called."""
        ticker = Ticker(self._interval_s)
        index = 0
        while not self.gone and not self._stop.wait(ticker.wait_s()):
            self._last = self._round(index)
            self.gone = not self._last.processes
            yield self._last
            index += 1

    def stop(self) -> None:
        """End the rounds at the next moment; may be called from a signal handler or another thread."""
        self._stop.set()

    def finish(self, late_s: float = LATE_S) -> Snapshot | None:
        """Wait shortly for takes in progress; return the last snapshot with what arrived, None if there was none.

        It replaces the snapshot with the same index.
        """
        if self._last is None:
            return None
        deadline_s = time.monotonic() + late_s
        late = [sample for slot in self._background for sample in slot.finish(deadline_s, self._last.processes)]
        self._last = _with(self._last, late)
        return self._last

    def request(self, name: str) -> Snapshot | None:
        """Take the readings of a probe that is in no round; return the last snapshot with them.

        Waits no longer than the probe's own deadline. None when there was no round, or no probe has this name.
        """
        taker = self._on_request.get(name)
        if taker is None or self._last is None:
            return None
        now = Round(self._last.index, self._last.at_ns, self._last.processes, thorough=True)
        taker.start(now)
        in_time = taker.wait(taker.probe.deadline_s)
        samples = taker.drain()
        if not in_time:
            read = {sample.process for sample in samples}
            late = f"took longer than {taker.probe.deadline_s:g} s"
            samples += [taker.unread(key, "timeout", late) for key in taker.subjects(now) if key not in read]
        self._last = _with(self._last, samples)
        return self._last

    def overhead(self) -> Overhead:
        """Return what hangdoc used since the observation began."""
        return self._meter.read()

    def restart_meter(self) -> None:
        """Measure the overhead from now on."""
        self._meter = Meter()

    def close(self) -> None:
        """End all probes and their threads; one that is stuck in the kernel is left behind."""
        self._stop.set()
        for background in self._background:
            background.close()
        for foreground in self._foreground:
            foreground.close()
        for taker in self._on_request.values():
            taker.close()

    def _round(self, index: int) -> Snapshot:
        processes = self._roster.members()
        at_ns, wall_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME), time.time_ns()
        thorough = self.pace.next_round(index)
        now = Round(index, at_ns, processes, thorough, self.pace.calm, self.pace.is_deep(index))
        samples: list[Sample] = []
        # Dumps begin after the cheap readings, which they would delay on a small machine.
        for foreground in self._foreground:
            if processes or foreground.after_end:
                samples += foreground.take(now)
        if processes:
            for background in self._background:
                samples += background.take(now)
        return Snapshot(
            index=index,
            at_ns=at_ns,
            wall_ns=wall_ns,
            processes=processes,
            samples=tuple(samples),
            tally=tally_of(samples),
        )


def _with(snapshot: Snapshot, late: list[Sample]) -> Snapshot:
    samples = (*snapshot.samples, *late)
    return replace(snapshot, samples=samples, tally=tally_of(samples))
