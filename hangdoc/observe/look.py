"""One look at a launch: as short as the readings allow, never longer than it may be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from hangdoc.errors import ExitCode, HangdocError
from hangdoc.model.diagnosis import Diagnosis
from hangdoc.model.reading import Known
from hangdoc.model.snapshot import Snapshot
from hangdoc.model.thread import CpuUse
from hangdoc.observe.attach import Attached
from hangdoc.observe.evidence import finish
from hangdoc.observe.stop import Stop
from hangdoc.observe.tape import Tape
from hangdoc.trace.records import Trace

End: TypeAlias = Literal["settled", "time", "gone", "stopped"]
"""What ended an observation: the verdict stood, its time was over, the launch was gone, somebody pressed Ctrl-C."""


@dataclass(frozen=True)
class Reasoning:
    """The pure half. settled: the last slices of a trace agree on a verdict.

    prepare: called once, in the pause after the first round, for imports that must not delay that one.
    """

    diagnose: Callable[[Trace], Diagnosis]
    settled: Callable[[Trace], bool]
    prepare: Callable[[], None] = lambda: None


def _not_asked(_: Trace) -> Diagnosis:
    raise AssertionError("a recording diagnoses nothing")


NO_REASONING = Reasoning(_not_asked, lambda _: False)
"""For a recording: it goes on for its whole time, whatever there is to see."""


@dataclass(frozen=True)
class Look:
    """What was seen, and what ended it."""

    trace: Trace
    end: End


@dataclass(frozen=True)
class Window:
    """At least least_s, then as long as the readings do not agree, most_s at most."""

    least_s: float = 5.0
    most_s: float = 30.0


def look(attached: Attached, window: Window, reasoning: Reasoning) -> Look:
    """Observe once. HangdocError (exit 4) when the launch is gone before the first round or nothing can be read."""
    with Stop(attached.observer.stop) as stop:
        end = _rounds(attached, window, reasoning)
        if end != "gone":
            finish(attached, reasoning.diagnose)
    if stop.asked:
        end = "stopped"
        require_round(attached.tape)
    trace = attached.tape.trace()
    require_reading(trace, attached.launch.root.pid)
    return Look(trace, end)


def _rounds(attached: Attached, window: Window, reasoning: Reasoning) -> End:
    begin_ns = 0
    for snapshot in attached.observer.rounds():
        begin_ns = begin_ns or snapshot.at_ns
        attached.tape.add(snapshot)
        if is_gone(snapshot):
            attached.tape.finish(None)
            return "gone"
        if attached.tape.rounds == 1:
            reasoning.prepare()
        # Half a round of tolerance: a round that began a millisecond early must not cost another second.
        seen_s = (snapshot.at_ns - begin_ns) / 1e9 + attached.tape.ring.header.interval_s / 2
        if seen_s >= window.least_s and reasoning.settled(attached.tape.trace()):
            return "settled"
        if seen_s >= window.most_s:
            return "time"
    return "stopped"


def is_gone(snapshot: Snapshot) -> bool:
    """Say whether nobody is left: no member at all, or only zombies that nobody has buried yet."""
    ended = {
        sample.process
        for sample in snapshot.samples
        if isinstance(sample.reading, Known) and isinstance(sample.reading.value, CpuUse)
        if sample.reading.value.stat.is_zombie
    }
    return all(process.key in ended for process in snapshot.processes)


def require_round(tape: Tape) -> None:
    """Raise KeyboardInterrupt when Ctrl-C came before there was anything to report."""
    if not tape.rounds:
        raise KeyboardInterrupt


def require_reading(trace: Trace, pid: int) -> None:
    """Raise when not one reading succeeded: then there is nothing to speak of."""
    if not any(snapshot.processes for snapshot in trace.snapshots) or is_gone(trace.snapshots[0]):
        raise HangdocError(
            f"the launch of pid {pid} was gone before the first round",
            "give the pid of a running launch",
            ExitCode.UNOBSERVABLE,
        )
    if not any(isinstance(sample.reading, Known) for snapshot in trace.snapshots for sample in snapshot.samples):
        raise HangdocError(
            f"nothing of pid {pid} can be read",
            "run hangdoc as the same user or as root, see hangdoc probes",
            ExitCode.UNOBSERVABLE,
        )
