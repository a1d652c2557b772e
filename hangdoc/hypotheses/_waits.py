"""Which thread of a suspect stands still, and in what: shared by the hypotheses of blocked ranks."""

from __future__ import annotations

from collections.abc import Iterator

from hangdoc.criteria import Absent, Case, Outcome, Present, Sign, Unread
from hangdoc.features.activity import Waiting, waiting
from hangdoc.features.dumps import ThreadHistory
from hangdoc.features.features import Features, Member
from hangdoc.features.launch_waits import joins_a_thread, rank_that_waits_for
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._plumbing import is_plumbing
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.procfs.syscalls import Call


def worker_threads(member: Member) -> Reading[tuple[ThreadHistory, ...]]:
    """Return the Python threads that are not helpers: the main thread first."""
    if isinstance(member.dumps, Missing):
        return member.dumps
    if "workers" not in member.found:
        found = [thread for thread in member.dumps.value.threads.values() if not thread.is_helper]
        member.found["workers"] = tuple(sorted(found, key=lambda thread: (thread.tid != member.key.pid, thread.tid)))
    return Known(member.found["workers"])


def differing(threads: tuple[ThreadHistory, ...]) -> Iterator[ThreadHistory]:
    """Yield those whose newest stack no thread before them has: the workers of a pool say the same of a stack."""
    seen: set[int] = set()
    for thread in threads:
        if id(thread.last.stack) not in seen:  # equal stacks are one object: the trace has each once
            seen.add(id(thread.last.stack))
            yield thread


def is_native(member: Member) -> bool:
    """Tell whether a process is known not to run Python, so that its threads have no stacks to be read.

    The stacks of one whose main thread has ended cannot be had either, whatever it runs.
    """
    if not isinstance(member.dumps, Missing) or isinstance(member.motion, Missing):
        return False
    return member.dumps.reason == "unsupported" and member.motion.value.state not in {"Z", "X"}


def stuck_in(member: Member, *calls: Call) -> Reading[Waiting | None]:
    """Return the first worker thread that sat in one of these system calls in every round; None when none did."""
    threads = worker_threads(member)
    if isinstance(threads, Missing):
        return threads
    unread: Missing | None = None
    for thread in threads.value:
        wait = waiting(member, thread.tid)
        if isinstance(wait, Missing):
            unread = wait
        elif wait.value is not None and wait.value.call in calls:
            return Known(wait.value)
    return unread or Known(None)


def every_other_thread_is_parked(member: Member, tid: int | None = None) -> Reading[bool]:
    """Tell whether all threads of a process but one, native ones too, wait for each other: none can end any wait.

    Each waits without a timeout for what only a thread of its own process can do, the end of one included.
    """
    clocks = member.clocks
    if isinstance(clocks, Missing):
        return clocks
    for other in sorted(set(clocks.value) - {tid}):
        wait = waiting(member, other)
        if isinstance(wait, Missing):
            return wait
        # A pool's worker that was caught in its wait, and worked in between, is alive.
        parked = wait.value is not None and (wait.value.is_parked or joins_a_thread(member, other))
        if not parked or not clocks.value[other].is_still:
            return Known(False)
    return Known(True)


def idle_is_known(features: Features) -> bool:
    """Tell whether the engine's tables name the frames of its idle loops, so that whoever is elsewhere does not idle.

    vLLM's do not: its workers wait for the next batch in a loop over shared memory.
    """
    return features.launch.engine == "sglang"


def nobody_left_to_release(case: Case) -> Outcome:
    """No thread of the process is left that could release the lock, and idling does not look like this.

    Rule: a lock that processes do not share can only be released by a thread of its own process. In an engine whose
    idle loops are known, every Python thread has to wait without a timeout, or exist only to wait. Elsewhere every
    thread has to, native ones too, and either the main thread waits for a plain lock (pools and servers without work
    wait in queues, conditions, futures and joins), or another rank waits for the process's word, which nobody in it is
    left to give. Fails when native code releases it from a thread that has never run Python, and for a process whose
    signal handlers release it.
    """
    if not idle_is_known(case.features):
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
    if isinstance(parked, Missing):
        return Unread.of(parked, f"what every thread of {name} waits in")
    if not parked.value:
        return Unread(f"a thread of {name}, or another process, might still release it")
    if (waiter := rank_that_waits_for(case.features, case.patient)) is not None:
        return Present(
            f"every thread of {name} waits without a timeout for another of its threads, and "
            f"{signs.name_of(waiter.process)} waits for {name}: nobody is left who could go on"
        )
    if isinstance(main, Missing):
        return Unread.of(main, f"stack of {name}")
    if main.value.leaf is None or is_plumbing(main.value.leaf):
        return Unread(f"{name} may have nothing to do: {signs.where(main.value)}")
    return Present(f"every thread of {name} waits without a timeout, its main thread for a lock: none can release it")


def stack_of(member: Member, tid: int) -> ThreadHistory | None:
    """Return a thread's stacks, if they were taken."""
    return member.dumps.value.threads.get(tid) if isinstance(member.dumps, Known) else None


def place(member: Member, tid: int) -> str:
    """Return where a thread stands, for a sentence."""
    thread = stack_of(member, tid)
    return f"thread {tid}" if thread is None else signs.where(thread)


def sits_in(what: str, *calls: Call) -> Sign:
    """Return the sign that a worker thread of the suspect sat in one of these system calls all the time."""

    def sign(case: Case) -> Outcome:
        stuck = stuck_in(case.patient, *calls)
        if isinstance(stuck, Missing):
            return Unread.of(stuck, f"what {signs.name_of(case.patient.process)} waits in")
        if stuck.value is None:
            return Absent(f"no thread of {signs.name_of(case.patient.process)} waits {what}")
        tid = stuck.value.tid
        return Present(
            f"thread {tid} of {signs.name_of(case.patient.process)} waits {what}: {place(case.patient, tid)}"
        )

    sign.__doc__ = f"A working thread of it waited {what} all the time."
    return sign


def waits_for_others(case: Case) -> Outcome:
    """Excluding: its main thread is in a collective, a rendezvous or an idle loop, where others have to come."""
    main = case.patient.main
    if is_native(case.patient):
        return Absent(f"{signs.name_of(case.patient.process)} is no Python process: it is in no collective of Python's")
    if isinstance(main, Missing):
        return Unread.of(main, f"stack of {signs.name_of(case.patient.process)}")
    if main.value.ever_does("collective", "rendezvous", "idle-poll", "parent-wait"):
        return Present(f"{signs.name_of(case.patient.process)} waits for others: {signs.where(main.value)}")
    return Absent(f"{signs.name_of(case.patient.process)} does not wait for another rank")


TIMERS = frozenset({10, 12, 14, 26, 27, 29, *range(34, 65)})
"""SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO and the real-time signals that glibc leaves to programs
(signal(7)): who has a handler for one of these may be woken by a timer or by itself."""

ORDERS = TIMERS | {1, 3, 15, 17}
"""Also SIGHUP, SIGQUIT, SIGTERM and SIGCHLD: their handlers write into the pipe that a program waits at for them."""


def handler_of(member: Member, signals: frozenset[int]) -> int | None:
    """Return the first of these signals that a process has a handler for; None when it has none."""
    readings = member.waits.value if isinstance(member.waits, Known) else ()
    caught = readings[-1].caught_signals if readings else 0
    return next((number for number in sorted(signals) if caught >> (number - 1) & 1), None)


def timer_of_its_own(member: Member, features: Features) -> str | None:
    """Say that a handler of its own may end a member's wait, or that this is not known; None when none may.

    A timer (SIGALRM) or a word of another process breaks off any wait of a program that has a handler for it. Not
    asked of a server that is known: its handlers are known to write a trace or to end it.
    """
    if signs.is_server(features):
        return None
    name = signs.name_of(member.process)
    if isinstance(member.waits, Missing):
        return f"whether {name} has a handler of its own that may end the wait"
    number = handler_of(member, TIMERS)
    return None if number is None else f"a handler of its own for signal {number} may end the wait of {name}"
