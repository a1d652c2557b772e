"""HD330: the log of a start ends with something that moved: a bar with a pace, or a step just now."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.baseline import TYPICAL_S
from hangdoc.features.phases import STARTING
from hangdoc.features.startup import Bar, bar_at_end, stands_s
from hangdoc.hypotheses import _log_signs as logs
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.reading import Known, Missing

PAUSE_BY, PAUSE_S = 10.0, 60.0
"""How much longer than a bar's step it may pause: shards differ in size, a disk is used by others. Arbitrary."""


def _bar(case: Case) -> Bar | None:
    return bar_at_end(case.features.log.value) if isinstance(case.features.log, Known) else None


def _moved_at_the_end(case: Case) -> Outcome:
    """Its last line is a bar that had a pace until just now, or a step so young that it cannot be late."""
    log = case.features.log
    if isinstance(log, Missing):
        return Unread.of(log, "what its log ends with")
    start = case.features.start
    if isinstance(start, Missing):
        return Unread.of(start, "which steps its log has")
    if not log.value.until_known:
        stood_s: float | None = None
    elif (stood_s := stands_s(log.value, start.value)) is None:
        return Unread("for how long it has made no step")
    bar = _bar(case)
    if bar is not None and bar.moved and bar.done < bar.total:
        return _pace(bar, stood_s)
    return _young_step(case, stood_s)


def _pace(bar: Bar, silent_s: float | None) -> Outcome:
    left = f", {bar.left_s.value:,.0f} s left at its pace" if isinstance(bar.left_s, Known) else ""
    text = f"its log ends with {bar.text}, {bar.done:.0f} of {bar.total:.0f}{left}"
    if silent_s is None:
        return Unread(f"{text}: nothing tells whether it went on; --now does")
    if silent_s > PAUSE_BY * bar.step_s + PAUSE_S:
        return Unread(f"{text}, but nothing of the start came for {silent_s:,.0f} s")
    return Present(text)


def _young_step(case: Case, silent_s: float | None) -> Outcome:
    start = case.features.start
    last = start.value.last if isinstance(start, Known) else None
    if last is None or last.step.name not in TYPICAL_S:
        return Absent("its log ends with nothing that would be on its way")
    if silent_s is None:
        return Unread("until when the log stayed as it is: --now tells")
    usual_s = TYPICAL_S[last.step.name][0]
    if silent_s <= max(usual_s, YOUNG_S):
        return Present(f"its last step was {silent_s:,.0f} s ago")
    return Unread(f"its last step was {silent_s:,.0f} s ago")


YOUNG_S = 10.0
"""Silence that means nothing in any phase of a start. Arbitrary."""


def _still_starting(case: Case) -> Outcome:
    """It is in its start."""
    phase = case.features.phase
    return Present(f"its log ends in {phase}") if phase in STARTING else Absent(f"its log ends in {phase}")


def _something_failed(case: Case) -> Outcome:
    """A failure or a complaint is in the log."""
    if isinstance(case.features.log, Missing):
        return Unread.of(case.features.log, "whether something failed")
    found = (*logs.lasting(case.features), *case.features.log.value.complaints)
    return Present(f"its log says: {found[0].text}") if found else Absent("the log names no failure")


def _headline(case: Case) -> str:
    bar = _bar(case)
    if bar is not None and isinstance(bar.left_s, Known) and bar.done < bar.total:
        return f"It was starting and moved: {bar.text}, {bar.left_s.value:,.0f} s left at that pace."
    return f"It was starting and moved: the log ends in {case.features.phase}."


def _action(case: Case) -> str:
    bar = _bar(case)
    if bar is not None and bar.moved and bar.done < bar.total:
        return "Wait for as long as the bar says, then look again: hangdoc watch sees whether it still moves."
    last = case.features.start.value.last if isinstance(case.features.start, Known) else None
    most_s = TYPICAL_S[last.step.name][1] if last is not None and last.step.name in TYPICAL_S else 0
    until = f" Good starts went on {most_s:,.0f} s after this step at the latest." if most_s else ""
    return f"Wait and look again: hangdoc watch sees whether it still moves.{until}"


HYPOTHESIS = Hypothesis(
    id="HD330",
    name="starting-by-its-log",
    verdict="slow-start",
    suspects=signs.the_launch,
    essential=(logs.log_is_all, _still_starting, _moved_at_the_end),
    contrary=(logs.still_lives,),
    excluding=(_something_failed, logs.in_order),
    headline=_headline,
    action="Wait, then look again: hangdoc watch sees whether it still moves.",
    action_in=_action,
    playbook="starting-by-its-log",
)
