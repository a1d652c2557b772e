"""Follow a launch for as long as it takes: a diagnosis every few rounds, memory that does not grow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Literal, TypeAlias

from hangdoc.errors import ExitCode
from hangdoc.features.slices import EQUAL_SLICES
from hangdoc.model.diagnosis import Diagnosis
from hangdoc.model.snapshot import Snapshot
from hangdoc.observe.alarm import Alarm
from hangdoc.observe.attach import Attached
from hangdoc.observe.evidence import finish
from hangdoc.observe.look import End, Reasoning, is_gone, require_reading, require_round
from hangdoc.observe.stop import Stop
from hangdoc.report.exit_code import exit_code, exit_code_after_end
from hangdoc.report.line import is_change
from hangdoc.sampling.pace import CALM_EVERY, QUIET_EVERY, RESTING_EVERY
from hangdoc.trace.records import Trace

Until: TypeAlias = Literal["ready", "hang", "exit"]

ROUNDS_BETWEEN = 3
"""Rounds from one diagnosis to the next: a verdict rests on three slices, so these are new ones each time."""

RECENT_ROUNDS = 12
"""Rounds that are reasoned about alone when all that are kept do not agree: a launch that polled, and now burns CPU in
vain, shows both in the longer window. Arbitrary: the shortest look and what its longest rule asks for (8 s), and more.
"""

UNCHANGED_S = 60.0
"""How long a launch that is not well has to stay as it is before it is looked at seldom, too. Arbitrary: the cheap
readings of each round call the close look back."""

QUIET_S, RESTING_S = 30.0, 120.0
"""How long a launch has to stay as it is before it is looked at more seldom, and most seldom. Arbitrary, as above."""

LOOKS_IN_A_TIMER = 4
"""How often a launch that is well is looked at, at least, within the shortest timer that would end it once it hangs. A
busy poll that turns into a busy hang shows in the stacks alone: the evidence has to be there before the end. Arbitrary.
"""

NEAR_S = 90.0
"""Time left of a timer of the launch's own that keeps the look close. Arbitrary: more than the longest pause."""


@dataclass(frozen=True)
class Goal:
    """What ends the following, whichever comes first: a state, a time; None: never. patience_s: see Following."""

    until: Until | None = None
    timeout_s: float | None = None
    patience_s: float = 30.0


@dataclass(frozen=True)
class View:
    """The launch as it is now. end: what ended the following, None while it goes on ("settled": until was reached).

    rounds: how many of the last rounds say so, when it is not all that are kept.
    """

    diagnosis: Diagnosis
    end: End | None
    rounds: int | None = None


class Listener:
    """Hears what goes on between the views; this one does nothing with it."""

    def round(self, snapshot: Snapshot) -> None:
        """Hear of a round."""

    def unsettled(self, diagnosis: Diagnosis) -> None:
        """Hear a diagnosis that the readings do not agree on yet, and that is no view."""


class Following:
    """One long observation. A diagnosis that the readings do not agree on is passed over for patience_s at most.

    While the launch is well, or has been as it is for long, deep readings and diagnoses are rare; the cheap readings of
    each round call them back.
    """

    def __init__(self, attached: Attached, reasoning: Reasoning, goal: Goal, listener: Listener | None = None) -> None:
        self._listener = listener or Listener()
        self._attached = attached
        self._reasoning = reasoning
        self._goal = goal
        self._begin_ns = 0
        self._stood_ns = 0
        self._next = ROUNDS_BETWEEN
        self._pace = attached.observer.pace
        self._alarm = Alarm()
        self._shortest_timer_s = min(attached.launch.limits.values(), default=inf)
        self._before: Diagnosis | None = None
        self._told: Diagnosis | None = None
        self._changed_ns = 0

    def views(self) -> Iterator[View]:
        """Yield a view at each diagnosis that stands, and a last one that says what the end was."""
        observer, tape = self._attached.observer, self._attached.tape
        with Stop(observer.stop):
            for snapshot in observer.rounds():
                tape.add(snapshot)
                if tape.rounds == 1:
                    self._reasoning.prepare()
                self._listener.round(snapshot)
                view = self._view(snapshot, tape.rounds - 1)
                if view is not None:
                    yield view
                    if view.end is not None:
                        return
            require_round(tape)
            yield self._last("stopped")

    def _view(self, snapshot: Snapshot, number: int) -> View | None:
        self._begin_ns = self._begin_ns or snapshot.at_ns
        self._stood_ns = self._stood_ns or snapshot.at_ns
        if is_gone(snapshot):
            return self._last("gone")
        timeout_s = self._goal.timeout_s
        if timeout_s is not None and snapshot.at_ns - self._begin_ns >= timeout_s * 1e9:
            return self._last("time")
        trace = self._attached.tape.trace()
        if self._pace.calm and self._alarm.rings(trace):
            self._pace.suspect()
            self._next = min(self._next, number + ROUNDS_BETWEEN)
        return None if number < self._next else self._judge(trace, snapshot.at_ns, number)

    def _judge(self, trace: Trace, now_ns: int, number: int) -> View | None:
        """Diagnose, and settle when to do so again; None when there is nothing to tell."""
        self._next = number + ROUNDS_BETWEEN
        rounds = None
        if not self._stands(trace, now_ns):
            recent = None if self._pace.calm else self._attached.tape.trace(RECENT_ROUNDS)
            if recent is None or not self._hangs_of_late(recent):
                self._unsettled(trace)
                return None
            trace, rounds = recent, RECENT_ROUNDS
        view = View(self._diagnosis(trace), None, rounds)
        if self._pace.calm and self._is_news(view.diagnosis) and _is_hang(view.diagnosis):
            self._pace.suspect()  # no hang is announced from a sparse look: a close one comes first
            return None
        self._stood_ns, self._told = now_ns, view.diagnosis
        self._set_pace(view.diagnosis, trace, number)
        return self._last("settled", rounds) if is_reached(self._goal.until, view.diagnosis) else view

    def _hangs_of_late(self, recent: Trace) -> bool:
        """Say whether the last rounds alone tell of a hang, as they would to somebody who came just now."""
        return self._reasoning.settled(recent) and _is_hang(self._diagnosis(recent))

    def _unsettled(self, trace: Trace) -> None:
        if len(trace.snapshots) <= EQUAL_SLICES:
            self._pace.suspect()
            return
        diagnosis = self._diagnosis(trace)
        self._listener.unsettled(diagnosis)
        if self._is_news(diagnosis) or is_limit_near(diagnosis):  # otherwise it is as unclear as it has been for long
            self._pace.suspect()

    def _is_news(self, diagnosis: Diagnosis) -> bool:
        return self._before is None or is_change(self._before, diagnosis)

    def _set_pace(self, diagnosis: Diagnosis, trace: Trace, number: int) -> None:
        unchanged_s = self._unchanged_s(diagnosis, trace.snapshots[-1].at_ns)
        is_well = exit_code(diagnosis.verdict, diagnosis.grade) is ExitCode.OK
        if not is_well and (unchanged_s < UNCHANGED_S or is_limit_near(diagnosis)):
            self._pace.suspect()
            return
        every = CALM_EVERY if unchanged_s < QUIET_S else QUIET_EVERY if unchanged_s < RESTING_S else RESTING_EVERY
        every = int(min(every, max(CALM_EVERY, self._shortest_timer_s / LOOKS_IN_A_TIMER)))
        self._pace.calm_down(every)
        self._alarm.judged(trace)
        self._next = number + every

    def _unchanged_s(self, diagnosis: Diagnosis, now_ns: int) -> float:
        """Return for how long verdict, grade, phase and culprits have been these."""
        if self._is_news(diagnosis):
            self._before, self._changed_ns = diagnosis, now_ns
        return (now_ns - self._changed_ns) / 1e9

    def _stands(self, trace: Trace, now_ns: int) -> bool:
        if self._reasoning.settled(trace):
            return True
        if self._pace.calm and self._is_news(self._diagnosis(trace)):
            self._stood_ns = now_ns  # patience begins with the doubt, not with the last look, which is long ago
            return False
        return now_ns - self._stood_ns >= self._goal.patience_s * 1e9

    def _last(self, end: End, rounds: int | None = None) -> View:
        tape = self._attached.tape
        if end == "gone":
            tape.finish(None)
        else:
            finish(self._attached, self._diagnosis)
        diagnosis = self._diagnosis(tape.trace(rounds))
        if end != "gone" and self._pace.calm and self._told is not None and diagnosis.verdict == "undetermined":
            # Deep readings are rare in a calm observation, and the cheap ones since the last diagnosis say nothing new.
            diagnosis = self._told
        return View(diagnosis, end, rounds)

    def _diagnosis(self, trace: Trace) -> Diagnosis:
        require_reading(trace, self._attached.launch.root.pid)
        return self._reasoning.diagnose(trace)


def _is_hang(diagnosis: Diagnosis) -> bool:
    return exit_code(diagnosis.verdict, diagnosis.grade) is ExitCode.HANG


def is_limit_near(diagnosis: Diagnosis) -> bool:
    """Say whether a timer that ends the launch comes soon, and is not long overdue."""
    return any(limit.left_s is not None and limit.left_s <= NEAR_S and limit.latest_s for limit in diagnosis.limits)


def is_reached(until: Until | None, diagnosis: Diagnosis) -> bool:
    """Say whether a diagnosis is the state that was waited for; the exit is no diagnosis."""
    if until == "ready":
        is_well = exit_code(diagnosis.verdict, diagnosis.grade) is ExitCode.OK
        return is_well and diagnosis.phase in ("ready", "serving")
    return until == "hang" and _is_hang(diagnosis)


def following_code(view: View, until: Until | None) -> ExitCode:
    """Return the exit code of a following that has ended."""
    code = exit_code(view.diagnosis.verdict, view.diagnosis.grade)
    match view.end:
        case "gone" if until == "exit":
            return ExitCode.HANG if exit_code_after_end(view.diagnosis) is ExitCode.HANG else ExitCode.OK
        case "gone":
            return exit_code_after_end(view.diagnosis)
        case "time":
            return ExitCode.HANG if code is ExitCode.HANG else ExitCode.UNDETERMINED
        case _:
            return code
