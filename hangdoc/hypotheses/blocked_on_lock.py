"""HD201: a rank waits for a lock that no thread of its process is left to release."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import waiting
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._waits import (
    every_other_thread_is_parked,
    idles_in_known_ways,
    place,
    sits_in,
    stuck_in,
    waits_for_others,
    worker_threads,
)
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
    """No thread of the process is left that could release the lock, and idling does not look like this.

    Rule: a lock that processes do not share can only be released by a thread of its own process. In an engine whose
    idle loops are known, every Python thread has to wait without a timeout, or exist only to wait. Elsewhere every
    thread has to, native ones too, and the main thread has to wait for a plain lock: pools and servers without work
    wait in queues, conditions, futures and joins. Fails when native code releases it from a thread that has never run
    Python, and for a main thread whose signal handlers release it.
    """
    if not idles_in_known_ways(case.features):
        return _deadlocked_for_sure(case)
    threads = worker_threads(case.patient)
    if isinstance(threads, Missing):
        return Unread.of(threads, "the other threads of the process")
    for thread in threads.value:
        wait = waiting(case.patient, thread.tid)
        if isinstance(wait, Missing):
            return Unread.of(wait, f"what thread {thread.tid} waits in")
        if wait.value is None or not wait.value.is_parked:
            return Unread(f"thread {thread.tid} ({signs.where(thread)}) might still release it")
    return Present(
        f"all {len(threads.value)} working threads of the process wait without a timeout: none can release it"
    )


def _deadlocked_for_sure(case: Case) -> Outcome:
    main, name = case.patient.main, signs.name_of(case.patient.process)
    parked = every_other_thread_is_parked(case.patient)
    if isinstance(main, Missing):
        return Unread.of(main, f"stack of {name}")
    if isinstance(parked, Missing):
        return Unread.of(parked, f"what every thread of {name} waits in")
    if not parked.value:
        return Unread(f"a thread of {name}, or another process, might still release it")
    if main.value.leaf is None or signs.is_plumbing(main.value.leaf):
        return Unread(f"{name} may have nothing to do: {signs.where(main.value)}")
    return Present(f"every thread of {name} waits without a timeout, its main thread for a lock: none can release it")


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
