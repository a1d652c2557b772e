"""HD902: the log of a start stayed silent for much longer than good starts were at this step."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.phases import STARTING
from hangdoc.features.startup import bar_at_end
from hangdoc.hypotheses import _log_signs as logs
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.reading import Known, Missing

LONGER_BY, LONGER_S = 3.0, 120.0
"""How much longer than the slowest good start a step has to be silent. Arbitrary: cold caches, and a disk that
others use, made steps of equal launches differ by two."""

EXPLAINED_S = 1800.0
"""Silence that has an innocent reason although good starts never had it: kernels that are compiled because a cache is
cold (DeepGEMM says 10 to 20 min, and 30 min were seen), a peer that comes late (torch waits for it for 30 min)."""


def _silent_too_long(case: Case) -> Outcome:
    """It has been silent for much longer than good starts were at this step, and than has an innocent reason.

    Without good starts to compare with, silence alone is no sign: healthy ones were silent for 60 min.
    """
    log = case.features.log
    if isinstance(log, Missing):
        return Unread.of(log, "how long it has been silent")
    if not log.value.until_known:
        return Unread("until when the log stayed as it is: --now tells")
    silent_s, usual_s = log.value.silent_s, _usual_s(case)
    if usual_s is None:
        return Unread(f"silent for {silent_s:,.0f} s, and how long good starts are silent here: --baseline tells")
    limit_s = max(LONGER_BY * usual_s + LONGER_S, EXPLAINED_S)
    sentence = f"silent for {silent_s:,.0f} s; good starts went on {usual_s:,.0f} s after this step"
    if (unlike := _not_comparable(case)) is not None:
        return Unread(f"{sentence}, but {unlike}")
    if silent_s >= limit_s:
        return Present(sentence)
    return Unread(f"{sentence}, and up to {limit_s:,.0f} s may be a cold cache or a late peer")


def _not_comparable(case: Case) -> str | None:
    """Return why good starts do not say how long this one may be silent; None where they do."""
    baseline, log = case.features.baseline, case.features.log
    if baseline is None or isinstance(log, Missing):
        return None
    if baseline.unlike:
        return f"they differ from it in {', '.join(baseline.unlike)}"
    lines = sorted((*log.value.milestones, *log.value.endless), key=lambda event: event.offset)
    newest = next((event for event in reversed(lines) if event.phase != "unknown"), None)
    if newest is None or baseline.knows(newest.name):
        return None
    return f"none of them had this: {newest.text}"


def _usual_s(case: Case) -> float | None:
    start, baseline = case.features.start, case.features.baseline
    if isinstance(start, Missing) or start.value.last is None or baseline is None:
        return None
    return baseline.longest_gap_s(start.value.last.step.name)


def _still_starting(case: Case) -> Outcome:
    """It is in its start: a server that is ready and idle is silent, and so is one with a long request."""
    phase = case.features.phase
    if phase == "unknown":
        return Unread("in which phase it is")
    if phase in STARTING:
        return Present(f"its log ends in {phase}")
    return Absent(f"its log ends in {phase}: an idle server is silent")


def _bar_takes_longer(case: Case) -> Outcome:
    """The log ends with a bar whose next step may well take this long."""
    log = case.features.log
    bar = bar_at_end(log.value) if isinstance(log, Known) else None
    if bar is None or bar.done >= bar.total or isinstance(log, Missing):
        return Absent("no bar that would still have to move")
    if log.value.silent_s < LONGER_BY * bar.step_s + LONGER_S:
        return Present(f"its bar takes {bar.step_s:,.0f} s a step")
    return Absent("its bar would have moved long ago")


def _something_failed(case: Case) -> Outcome:
    """A failure or a watchdog is in the log, which explains the silence better."""
    if isinstance(case.features.log, Missing):
        return Unread.of(case.features.log, "whether something failed")
    found = (*logs.lasting(case.features), *logs.watchdogs(case.features))
    return Present(f"its log says: {found[0].text}") if found else Absent("the log names no failure")


def _culprits(case: Case) -> tuple[Culprit, ...]:
    """Return the ranks that have not said the last step, where others have: these wait for them."""
    start = case.features.start
    if isinstance(start, Missing) or start.value.last is None:
        return ()
    absent = {rank for rank in start.value.absent if rank}
    said = start.value.last.first.text
    behind = [member for member in case.features.movers if tuple(sorted(member.process.rank.items())) in absent]
    return tuple(signs.culprit(member, f"has not said {said}, which others have") for member in behind)


def _headline(case: Case) -> str:
    log = case.features.log
    silent = "" if isinstance(log, Missing) else f" for {log.value.silent_s:,.0f} s"
    return f"Its log has been silent{silent} in {case.features.phase}, much longer than good starts were."


HYPOTHESIS = Hypothesis(
    id="HD902",
    name="hung-in-silence",
    verdict="hung",
    suspects=signs.the_launch,
    essential=(logs.log_is_all, _still_starting, _silent_too_long),
    contrary=(logs.still_lives,),
    excluding=(_bar_takes_longer, _something_failed, logs.in_order),
    headline=_headline,
    culprits=_culprits,
    action="Silence says that something may be wrong, not what.",
    playbook="hung-in-silence",
)
