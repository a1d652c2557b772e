"""Run one probe in a thread of its own that can be abandoned: a read that never returns must not hold hangdoc."""

from __future__ import annotations

import queue
import threading
import time

from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Missing, Reason
from hangdoc.model.snapshot import Sample
from hangdoc.sampling.probe import Context, Probe, Round, RunsPrograms, Session
from hangdoc.sampling.schedule import Budget

LEAVE_S = 0.5
"""How long closing waits for a take in progress before the thread is left behind; arbitrary."""


class Taker:
    """A probe, its session and its thread.

    The session is opened, used and closed in that thread only. Samples are handed over one by one, so those read
    before a deadline count. The thread is a daemon: one that is stuck in the kernel ends with hangdoc.
    """

    def __init__(self, probe: Probe, context: Context) -> None:
        self.probe = probe
        self.budget = Budget(probe.budget_ratio, probe.allowance_s)
        self.begun_s = 0.0
        self._context = context
        self._session: Session | None = None
        self._closing = threading.Event()
        self._jobs: queue.SimpleQueue[Round | None] = queue.SimpleQueue()
        self._samples: queue.SimpleQueue[Sample] = queue.SimpleQueue()
        self._idle = threading.Event()
        self._idle.set()
        self._thread = threading.Thread(target=self._work, name=f"hangdoc-{probe.name}", daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Whether a take is in progress."""
        return not self._idle.is_set()

    def start(self, now: Round) -> None:
        """Begin a take."""
        self._idle.clear()
        self.begun_s = time.monotonic()
        self._jobs.put(now)

    def wait(self, timeout_s: float) -> bool:
        """Wait for the take in progress; False when it did not end in time."""
        return self._idle.wait(max(0.0, timeout_s))

    def drain(self) -> list[Sample]:
        """Return the samples that arrived since the last call."""
        arrived = []
        while not self._samples.empty():
            arrived.append(self._samples.get())
        return arrived

    def close(self) -> None:
        """Close the session and end the thread, or leave it behind when it is stuck."""
        self._closing.set()
        self._jobs.put(None)
        session = self._session
        if session is not None and self.busy and isinstance(session, RunsPrograms):
            session.interrupt()
        self._thread.join(LEAVE_S)

    def _work(self) -> None:
        while (now := self._jobs.get()) is not None:
            before_s = self._cpu_s()
            try:
                self._take(now)
            finally:
                self.budget.spend(self._cpu_s() - before_s)
                self._idle.set()
        if self._session is not None:
            self._session.close()

    def _cpu_s(self) -> float:
        children_s = self._session.children_cpu_s if isinstance(self._session, RunsPrograms) else 0.0
        return time.thread_time() + children_s

    def _take(self, now: Round) -> None:
        left = list(self.subjects(now))
        try:
            if self._session is None:
                self._session = self.probe.open(self._context)
            for sample in self._session.take(now):
                if sample.process in left:
                    left.remove(sample.process)
                self._samples.put(sample)
                if self._closing.is_set():
                    return
        except Exception as error:  # noqa: BLE001  the one place: a probe's fault becomes a missing reading
            for key in left:
                self._samples.put(
                    self.unread(
                        key, "failed", f"{type(error).__name__}: {error}", "a fault of hangdoc: please report it"
                    )
                )

    def subjects(self, now: Round) -> tuple[ProcessKey | None, ...]:
        """Return what a take of this round reads: the host, or each process."""
        return (None,) if self.probe.host else tuple(process.key for process in now.processes)

    def unread(self, key: ProcessKey | None, reason: Reason, detail: str, remedy: str = "") -> Sample:
        """Make the sample of a reading that was not to be had."""
        taken_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        reading = Missing(self.probe.name, reason, detail, remedy)
        return Sample(probe=self.probe.name, process=key, taken_ns=taken_ns, reading=reading)
