"""What an unattended watch does with what it sees: evidence in time, the user's command, state and metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hangdoc.errors import ExitCode
from hangdoc.model.diagnosis import Diagnosis, LimitState
from hangdoc.model.snapshot import Snapshot
from hangdoc.observe.attach import Attached
from hangdoc.observe.follow import Listener, View
from hangdoc.report.exit_code import exit_code
from hangdoc.trace.records import Trace
from hangdoc.unattended.command import OnHang
from hangdoc.unattended.folder import Folder, Kept
from hangdoc.unattended.metrics import Metrics
from hangdoc.unattended.shelf import Occasion
from hangdoc.unattended.state import State

LEAD_RATIO = 0.5
"""Share of a timer's time that may be left when evidence is taken without a verdict. Arbitrary: SGLang's watchdog looks
every half of its time, so that it may come in the second half of it where progress was seen too late."""

LEAST_LEAD_S = 10.0
"""Seconds that are left at least when evidence is taken. Arbitrary: a thorough round of many ranks takes seconds."""

LONGEST_LEAD_S = 60.0
"""The same at most: who may stand still for long is not hurried. Arbitrary."""


@dataclass(frozen=True)
class Outlets:
    """Where it all goes; None: not asked for. complain: takes one line for people."""

    complain: Callable[[str], None]
    folder: Folder | None = None
    on_hang: OnHang | None = None
    state: State | None = None
    metrics: Metrics | None = None


class Vigil(Listener):
    """Hears every round and every diagnosis of a following.

    A hang begins with the first diagnosis that says so, and is over when one says that nothing hangs: evidence is taken
    and the command run once for each. When a timer of the launch comes near and there is no verdict yet, evidence is
    taken too, once for each standstill; and once more at the end of a launch that did not end well.
    """

    def __init__(self, attached: Attached, outlets: Outlets) -> None:
        self._attached = attached
        self._outlets = outlets
        self._hangs = False
        self._warned: set[str] = set()
        if outlets.state is not None:
            outlets.state.meet(attached.launch)

    def round(self, snapshot: Snapshot) -> None:
        """Keep state and metrics alive."""
        if self._outlets.metrics is not None:
            self._outlets.metrics.round(snapshot)
            self._outlets.metrics.lose(0 if self._outlets.folder is None else self._outlets.folder.lost)
        if self._outlets.state is not None:
            self._outlets.state.beat()

    def unsettled(self, diagnosis: Diagnosis) -> None:
        """Take evidence when time runs out before the readings agree."""
        self._mind_limits(diagnosis)

    def view(self, view: View) -> None:
        """Act on a diagnosis that stands."""
        diagnosis = view.diagnosis
        self._tell(diagnosis, ended=view.end == "gone")
        code = exit_code(diagnosis.verdict, diagnosis.grade)
        if view.end == "gone":
            if code is not ExitCode.OK:
                self._keep("end", diagnosis)
        elif code is ExitCode.HANG:
            self._hang(view)
        elif code is ExitCode.OK:
            self._hangs = False
            self._warned.clear()
        else:
            self._mind_limits(diagnosis)

    def _hang(self, view: View) -> None:
        if self._hangs:
            return
        diagnosis = view.diagnosis
        self._hangs = True
        if self._outlets.metrics is not None:
            self._outlets.metrics.hang()
        evidence = self._keep("hang", diagnosis, view.rounds)
        for limit in diagnosis.limits[:1]:
            self._outlets.complain(time_left(limit))
        if self._outlets.on_hang is not None:
            self._outlets.on_hang.run(diagnosis, _document(diagnosis), evidence)

    def _mind_limits(self, diagnosis: Diagnosis) -> None:
        for limit in diagnosis.limits:
            if limit.left_s is not None and limit.left_s > lead_s(limit.seconds):
                self._warned.discard(limit.name)
            elif limit.left_s is not None and limit.name not in self._warned and not self._hangs:
                self._warned.add(limit.name)
                self._outlets.complain(time_left(limit))
                self._keep("limit", diagnosis)

    def _keep(self, occasion: Occasion, diagnosis: Diagnosis, rounds: int | None = None) -> Kept | None:
        folder = self._outlets.folder
        if folder is None:
            return None
        kept = folder.keep(occasion, self._everything(occasion, rounds), _document_of)
        kept.add_done_callback(lambda done: self._tell_kept(diagnosis, done))
        return kept

    def _tell_kept(self, diagnosis: Diagnosis, kept: Kept) -> None:
        """Say where evidence is, as soon as it is there: in the thread that wrote it."""
        evidence = kept.result()
        if evidence is not None:
            self._outlets.complain(f"{diagnosis.verdict} in phase {diagnosis.phase}: evidence in {evidence.trace}")

    def _everything(self, occasion: Occasion, rounds: int | None) -> Trace:
        """Return the rounds that were reasoned about, with the readings that are still under way."""
        if occasion != "end":
            late = self._attached.observer.finish()
            if late is not None:
                self._attached.tape.again(late)
        return self._attached.tape.trace(rounds)

    def _tell(self, diagnosis: Diagnosis, *, ended: bool) -> None:
        if self._outlets.metrics is not None:
            self._outlets.metrics.tell(diagnosis)
        if self._outlets.state is not None:
            self._outlets.state.tell(diagnosis, ended=ended)


def lead_s(seconds: float) -> float:
    """Return how long before a timer's end evidence is taken.

    >>> lead_s(20), lead_s(30), lead_s(300)
    (10.0, 15.0, 60.0)
    """
    return min(max(seconds * LEAD_RATIO, LEAST_LEAD_S), LONGEST_LEAD_S)


def time_left(limit: LimitState) -> str:
    """Return how long remains until a timer ends the launch, as a sentence."""
    left = "unknown" if limit.left_s is None else f"{limit.left_s:.0f} s at the earliest"
    return f"{limit.ends} after {limit.seconds:g} s without progress: time left {left}"


def _document(diagnosis: Diagnosis) -> str:
    from hangdoc.report.document import encode  # noqa: PLC0415 - only for a hang

    return encode(diagnosis)


def _document_of(trace: Trace) -> str:
    from hangdoc.diagnosis import diagnose  # noqa: PLC0415 - only for a hang

    return _document(diagnose(trace, kind="trace"))
