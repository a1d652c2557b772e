"""HD201: a rank waits for a lock that no thread of its process is left to release."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._waits import nobody_left_to_release, place, sits_in, stuck_in, waits_for_others
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.reading import Known, Missing


def _without_timeout(case: Case) -> Outcome:
    """The wait has no timeout: only somebody else can end it."""
    stuck = stuck_in(case.patient, "futex")
    if isinstance(stuck, Missing):
        return Unread.of(stuck, "the arguments of the wait")
    if stuck.value is None:
        return Absent("nobody waits in a futex")
    if stuck.value.untimed:
        return Present("the wait has no timeout")
    return Absent("the wait has a timeout: it will look again by itself")


def _culprits(case: Case) -> tuple[Culprit, ...]:
    stuck = stuck_in(case.patient, "futex")
    if isinstance(stuck, Missing) or stuck.value is None:
        return ()
    tid = stuck.value.tid
    return (signs.culprit(case.patient, f"waits for a lock in {place(case.patient, tid)}", tid),)


def _headline(case: Case) -> str:
    stuck = stuck_in(case.patient, "futex")
    tid = stuck.value.tid if isinstance(stuck, Known) and stuck.value is not None else case.patient.key.pid
    return f"{signs.name_of(case.patient.process)} waits for a lock nobody will release, in {place(case.patient, tid)}."


HYPOTHESIS = Hypothesis(
    id="HD201",
    name="blocked-on-lock",
    verdict="blocked",
    suspects=signs.each_mover,
    essential=(
        sits_in("for a lock (futex)", "futex"),
        _without_timeout,
        signs.does("still"),
        signs.nothing_progresses,
        signs.positive_or_patience(nobody_left_to_release),
        signs.readings_are_steady,
    ),
    supporting=(nobody_left_to_release, signs.log_is_silent_too_long),
    excluding=(waits_for_others, signs.nobody_died),
    headline=_headline,
    culprits=_culprits,
    action="Find who should have released the lock in the frames above; end this launch.",
    playbook="blocked-on-lock",
)
