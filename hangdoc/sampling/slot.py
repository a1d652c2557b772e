"""A probe's place in the rounds: when it is taken, when it is left out, when it is given up."""

from __future__ import annotations

import time
from dataclasses import replace

from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.snapshot import Sample
from hangdoc.sampling.probe import Context, Probe, Round
from hangdoc.sampling.taker import Taker

MOST_STUCK = 3
"""Threads that may be stuck for one probe before it is given up until one returns; arbitrary."""


class ForegroundSlot:
    """A cheap probe: the round waits for it, up to its deadline.

    A process whose reading blocks (a hung file system, a driver) is left out from then on until that reading
    returns; the others are read by a fresh session.
    """

    def __init__(self, probe: Probe, context: Context) -> None:
        self.after_end = probe.after_end
        self._probe = probe
        self._context = context
        self._taker = Taker(probe, context)
        self._stuck: list[tuple[ProcessKey | None, Taker]] = []

    def take(self, now: Round) -> list[Sample]:
        """Take this round's readings, or say for each why it was not taken."""
        if not _is_due(self._probe, now):
            return []
        if wait_s := self._taker.budget.wait_s():
            return _over_budget(self._taker, now, wait_s)
        self._release()
        held = {key for key, _ in self._stuck}
        if None in held or len(self._stuck) >= MOST_STUCK:
            held = set(self._taker.subjects(now))
        free = tuple(process for process in now.processes if process.key not in held)
        left_out = [
            self._taker.unread(key, "timeout", "an earlier reading of it has not returned yet")
            for key in self._taker.subjects(now)
            if key in held
        ]
        if left_out and len(left_out) == len(self._taker.subjects(now)):
            return left_out
        return left_out + self._take(replace(now, processes=free))

    def close(self) -> None:
        """End the probe."""
        for taker in (self._taker, *(stuck for _, stuck in self._stuck)):
            taker.close()

    def _take(self, now: Round) -> list[Sample]:
        self._taker.start(now)
        in_time = self._taker.wait(self._probe.deadline_s)
        samples = self._taker.drain()
        if in_time:
            return samples
        read = {sample.process for sample in samples}
        unread = [key for key in self._taker.subjects(now) if key not in read]
        if unread:
            # Sessions read in the order of the round: the first without a sample is the one that blocks.
            self._replace(unread[0])
        late = f"took longer than {self._probe.deadline_s:g} s"
        return samples + [self._taker.unread(key, "timeout", late) for key in unread]

    def _replace(self, key: ProcessKey | None) -> None:
        self._stuck.append((key, self._taker))
        budget = self._taker.budget
        self._taker = Taker(self._probe, self._context)
        self._taker.budget = budget

    def _release(self) -> None:
        for entry in list(self._stuck):
            if not entry[1].busy:
                self._stuck.remove(entry)
                entry[1].close()


class BackgroundSlot:
    """A probe that runs beside the clock: its samples join the snapshot of the round in which they arrive."""

    def __init__(self, probe: Probe, context: Context) -> None:
        self._probe = probe
        self._taker = Taker(probe, context)
        self._due = False
        self._overdue = False
        self._delivered: set[ProcessKey | None] = set()

    def take(self, now: Round) -> list[Sample]:
        """Return what has arrived, and begin the next take when it is time."""
        samples = self._drain()
        self._due = self._due or _is_due(self._probe, now)
        if self._taker.busy:
            return samples + self._late(now)
        self._overdue = False
        if self._due:
            self._due = False
            if wait_s := self._taker.budget.wait_s():
                return samples + _over_budget(self._taker, now, wait_s)
            self._taker.start(now)
        return samples

    def finish(self, deadline_s: float, processes: tuple[Process, ...]) -> list[Sample]:
        """Wait for the take in progress; what never arrived in the whole observation is said to be missing."""
        self._taker.wait(deadline_s - time.monotonic())
        samples = self._drain()
        if not self._taker.busy:
            return samples
        subjects = (None,) if self._probe.host else tuple(process.key for process in processes)
        never = [key for key in subjects if key not in self._delivered]
        return samples + [
            self._taker.unread(key, "timeout", "no reading before the observation ended") for key in never
        ]

    def close(self) -> None:
        """End the probe."""
        self._taker.close()

    def _drain(self) -> list[Sample]:
        samples = self._taker.drain()
        self._delivered.update(sample.process for sample in samples)
        return samples

    def _late(self, now: Round) -> list[Sample]:
        if self._overdue or time.monotonic() - self._taker.begun_s < self._probe.deadline_s:
            return []
        self._overdue = True
        late = f"took longer than {self._probe.deadline_s:g} s"
        return [self._taker.unread(key, "timeout", late) for key in self._taker.subjects(now)]


def _is_due(probe: Probe, now: Round) -> bool:
    """Say whether a probe is taken in this round; a thorough round of a calm observation has the deep ones, too."""
    if now.calm and probe.deep:
        return now.deep
    return now.index % probe.every == 0


def _over_budget(taker: Taker, now: Round, wait_s: float) -> list[Sample]:
    share = f"{taker.budget.ratio:.0%} of one core"
    detail = f"left out to stay within {share}; next in {wait_s:.0f} s"
    return [taker.unread(key, "not-taken", detail) for key in taker.subjects(now)]
