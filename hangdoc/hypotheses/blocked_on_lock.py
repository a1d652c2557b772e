"""HD201: a rank waits for a lock that no thread of its process is left to release."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import waiting
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._waits import place, sits_in, stuck_in, waits_for_others, worker_threads
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


def _nobody_left_to_release(case: Case) -> Outcome:
    """Every Python thread of the process waits without a timeout, or exists only to wait.

    Rule: a Python lock, event or condition can only be released by a thread of its own process that runs Python.
    Why it works: with all of them parked for good, none can. Fails when native code releases it from a thread that has
    never run Python, and when another process writes to an eventfd that such a thread watches.
    """
    threads = worker_threads(case.patient)
    if isinstance(threads, Missing):
        return Unread.of(threads, "the other threads of the process")
    for thread in threads.value:
        wait = waiting(case.patient, thread.tid)
        if isinstance(wait, Missing):
            return Unread.of(wait, f"what thread {thread.tid} waits in")
        if wait.value is None or not wait.value.untimed:
            return Unread(f"thread {thread.tid} ({signs.where(thread)}) might still release it")
    return Present(
        f"all {len(threads.value)} working threads of the process wait without a timeout: none can release it"
    )


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
        signs.positive_or_patience(_nobody_left_to_release),
        signs.readings_are_steady,
    ),
    supporting=(_nobody_left_to_release, signs.log_is_silent_too_long),
    excluding=(waits_for_others, signs.nobody_died),
    headline=_headline,
    culprits=_culprits,
    action="Find who should have released the lock in the frames above; end this launch.",
    playbook="blocked-on-lock",
)
