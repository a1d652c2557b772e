"""HD202: ranks wait in a collective on the host, and one rank stays out of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import NATIVE_POLLERS, activity, waiting
from hangdoc.features.features import Member
from hangdoc.features.frames import is_file
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._http import requests_stand
from hangdoc.hypotheses._waits import idle_is_known, nobody_left_to_release, worker_threads
from hangdoc.hypotheses.exception_behind_collective import capture_was_left_early
from hangdoc.model.diagnosis import Culprit, Wait, WaitEnd
from hangdoc.model.reading import Known, Missing


def _peers(case: Case) -> Iterator[Member]:
    patient = case.patient.key
    return (member for member in case.features.movers if member.key != patient)


def _waiters(case: Case) -> tuple[Member, ...]:
    return tuple(
        member
        for member in _peers(case)
        if isinstance(member.main, Known) and member.main.value.always_does("collective")
    )


def _peers_wait_in_collective(case: Case) -> Outcome:
    """Every other rank stands in a collective."""
    peers = []
    for member in _peers(case):  # one by one: of hundreds of ranks the first one mostly tells
        if isinstance(member.main, Missing):
            return Unread.of(member.main, f"stack of {signs.name_of(member.process)}")
        if not member.main.value.always_does("collective"):
            return Absent(f"{signs.name_of(member.process)} is not in a collective: {signs.where(member.main.value)}")
        done = activity(member)
        if isinstance(done, Missing):
            return Unread.of(done, f"what {signs.name_of(member.process)} does")
        if done.value in {"works", "spins"}:
            return Absent(f"{signs.name_of(member.process)} {signs.describe(done.value)}")
        peers.append(member)
    if not peers:
        return Absent("there is no other rank")
    return Present(f"{_names(peers)} waits in a collective: {_place(peers[0])}")


def stands_still(case: Case) -> Outcome:
    """The rank outside does not move at all; one that wakes now and then may be on its way."""
    done = activity(case.patient)
    if isinstance(done, Missing):
        return Unread.of(done, f"what {signs.name_of(case.patient.process)} does")
    sentence = f"{signs.name_of(case.patient.process)} {signs.describe(done.value)}"
    if done.value == "still":
        return Present(sentence)
    return Unread(f"{sentence}: it may be on its way") if done.value == "stirs" else Absent(sentence)


LONG_SLEEP_S = 120.0
"""A sleep of which more is left is no back-off: those last seconds, up to a minute. Arbitrary above that."""


def will_not_come_by_itself(case: Case) -> Outcome:
    """Every working thread of the rank outside waits for a lock of its own process, or sleeps for minutes more.

    A rank that waits for a disk, a peer, a child or the end of a short sleep may only be slow.
    """
    name = signs.name_of(case.patient.process)
    threads = worker_threads(case.patient)
    if isinstance(threads, Missing):
        return Unread.of(threads, f"threads of {name}")
    for thread in threads.value:
        wait = waiting(case.patient, thread.tid)
        if isinstance(wait, Missing):
            return Unread.of(wait, f"what thread {thread.tid} of {name} waits in")
        if wait.value is None or not (wait.value.is_parked or (wait.value.sleep_left_s or 0.0) > LONG_SLEEP_S):
            return Unread(f"whether thread {thread.tid} of {name} comes by itself: {signs.where(thread)}")
    if not idle_is_known(case.features) and (native := _native_that_may_wake_it(case.patient)) is not None:
        return native
    return Present(f"no thread of {name} waits for a disk, a peer, a child or a short sleep")


def _native_that_may_wake_it(member: Member) -> Unread | None:
    """Look for a native thread that waits for somebody beyond the process, as for the answer to a remote call.

    Those that every torch program has, which poll for ever, bring nobody out of a lock.
    """
    name = signs.name_of(member.process)
    clocks = member.clocks
    if isinstance(clocks, Missing):
        return Unread.of(clocks, f"native threads of {name}")
    python = set(member.dumps.value.threads) if isinstance(member.dumps, Known) else set()
    for tid in sorted(set(clocks.value) - python - {member.key.pid}):
        if clocks.value[tid].name.startswith(NATIVE_POLLERS):
            continue
        wait = waiting(member, tid)
        if isinstance(wait, Missing):
            return Unread.of(wait, f"what thread {tid} of {name} waits in")
        if wait.value is None or not wait.value.is_parked:
            return Unread(f"whether thread {tid} of {name}, which is native, brings what it waits for")
    return None


def _names(members: Sequence[Member]) -> str:
    return ", ".join(signs.name_of(member.process) for member in members)


def _place(member: Member) -> str:
    if isinstance(member.main, Missing):
        return "unknown"
    for frame in member.main.value.last.stack:
        if is_file(frame.file, "torch/distributed/distributed_c10d.py") and frame.function != "wrapper":
            return f"{frame.function} ({signs.short_file(frame.file)}:{frame.line})"
    return signs.where(member.main.value)


def _reason(case: Case) -> str:
    main = case.patient.main
    place = signs.where(main.value) if isinstance(main, Known) else "unknown"
    return f"never came to the collective; it stands in {place}"


def _waits(case: Case) -> tuple[Wait, ...]:
    to = WaitEnd(pid=case.patient.key.pid, tid=case.patient.key.pid)
    return tuple(
        Wait(from_=WaitEnd(pid=member.key.pid, tid=member.key.pid), to=to, through="barrier", detail=_place(member))
        for member in _waiters(case)
    )


def _culprits(case: Case) -> tuple[Culprit, ...]:
    return (signs.culprit(case.patient, _reason(case)),)


HYPOTHESIS = Hypothesis(
    id="HD202",
    name="blocked-in-host-collective",
    verdict="blocked",
    suspects=signs.each_mover,
    essential=(
        _peers_wait_in_collective,
        signs.main_thread(
            lambda main: not main.ever_does("collective", "rendezvous"), "is outside any collective", "is in one too"
        ),
        stands_still,
        signs.positive_or_patience(will_not_come_by_itself),
        signs.nothing_progresses,
        signs.readings_are_steady,
    ),
    supporting=(_peers_wait_in_collective, nobody_left_to_release, signs.log_is_silent_too_long, requests_stand),
    excluding=(capture_was_left_early, signs.nobody_died),
    headline=lambda case: (
        f"{_names(_waiters(case))} waits in a collective for {signs.name_of(case.patient.process)}, which never came."
    ),
    culprits=_culprits,
    waits=_waits,
    action="Look at the frames of the rank that stays out: what it waits for there is the cause.",
    playbook="blocked-in-host-collective",
)
