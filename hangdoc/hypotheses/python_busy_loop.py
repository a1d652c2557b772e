"""HD101: a rank runs round and round in one Python function and gets nowhere."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Sign, Unread
from hangdoc.features.activity import SPIN_DEMAND_RATIO
from hangdoc.features.dumps import ThreadHistory
from hangdoc.features.features import Member
from hangdoc.features.frames import is_file
from hangdoc.features.loops import Loop, without_questions
from hangdoc.features.motion import ThreadMotion
from hangdoc.features.places import goes_round, never_ends, stands_in_one_call
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._event_loops import lost_below_event_loop
from hangdoc.hypotheses._http import requests_stand
from hangdoc.hypotheses._peers import is_waited_for, waiting_rank
from hangdoc.hypotheses._waits import ORDERS, every_other_thread_is_parked, handler_of, idle_is_known
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.stack import Frame

FEWEST_DUMPS = 3
"""Dumps that must all show the same function: loaders showed one or two different stacks in six dumps, so that two
alike prove nothing; with three the function at least did not return for seconds."""


def spinning_thread(member: Member) -> Reading[ThreadHistory | None]:
    """Return the member's Python thread with the highest demand, if that one burns CPU."""
    clocks = member.clocks
    if isinstance(clocks, Missing):
        return clocks
    if all(thread.demand_ratio < SPIN_DEMAND_RATIO for thread in clocks.value.values()):
        return Known(None)
    if isinstance(member.dumps, Missing):
        return member.dumps
    burning = [
        (clocks.value[tid].demand_ratio, -tid, seen)
        for tid, seen in member.dumps.value.threads.items()
        if tid in clocks.value and clocks.value[tid].demand_ratio >= SPIN_DEMAND_RATIO and not seen.is_helper
    ]
    return Known(max(burning, key=lambda one: one[:2])[2] if burning else None)


def _burns(case: Case) -> Outcome:
    """A thread of it is on a CPU, or waiting for one, nearly all the time."""
    thread = spinning_thread(case.patient)
    if isinstance(thread, Missing):
        return Unread.of(thread, f"threads of {signs.name_of(case.patient.process)}")
    if thread.value is None:
        return Absent(f"no Python thread of {signs.name_of(case.patient.process)} burns CPU")
    return Present(f"thread {thread.value.tid} of {signs.name_of(case.patient.process)} burns CPU")


def _stays_in_one_function(case: Case) -> Outcome:
    """Three dumps or more lie in the same function, and Python code runs there: it never returns.

    It runs when the dumps are not all alike, or when the thread was seen to go back to earlier instructions of one
    and the same frame; otherwise a long native call that holds the interpreter lock looks the same: unread.
    """
    thread = spinning_thread(case.patient)
    if isinstance(thread, Missing) or thread.value is None:
        return Unread("which function burns the CPU")
    seen = thread.value
    loop = seen.loop()
    if loop is None:
        return Absent(f"its stack moves through several functions: last in {signs.where(seen)}")
    if len(seen.views) < FEWEST_DUMPS:
        return Unread(f"only {len(seen.views)} stacks of it: {FEWEST_DUMPS} are needed")
    place = signs.place_of(loop.frame)
    if not loop.moves:
        return _goes_round_one_line(case.patient, seen, loop)
    return Present(f"{len(seen.views)} stacks all in {place}, at {_lines(loop)}, called from the same place")


def _goes_round_one_line(member: Member, thread: ThreadHistory, loop: Loop) -> Outcome:
    """Tell a loop of one line from a native call under it: by the instructions that the thread was seen at."""
    place, count = signs.place_of(loop.frame), len(thread.views)
    if isinstance(member.places, Known) and never_ends(member.places.value, thread.tid):
        return Present(f"{count} stacks all at {place}, a loop that is nothing but a jump back")
    found = goes_round(member.places.value, thread.tid, loop.frame) if isinstance(member.places, Known) else None
    if found is None:
        return Unread(f"{count} stacks all at {place}: a native call under it looks the same")
    return Present(f"{count} stacks all at {place}, and it went back {found.turns} times in {found.looks} looks at it")


def _lines(loop: Loop) -> str:
    return "one line with different callees" if loop.lines == 1 else f"{loop.lines} different lines"


def _place(thread: ThreadHistory) -> str:
    """Return the looping function and its caller: in a short look the loop may be in either."""
    loop = thread.loop()
    if loop is None:
        return signs.where(thread)
    stack = thread.last.stack
    above = next((at for at, frame in enumerate(stack) if frame == loop.frame), len(stack))
    caller = f" called by {signs.place_of(stack[above + 1])}" if above + 1 < len(stack) else ""
    return signs.place_of(loop.frame) + caller


def _holds_the_gil(case: Case) -> Outcome:
    """It held the interpreter lock in most stacks: the time goes by in Python, not in native code that releases it."""
    thread = spinning_thread(case.patient)
    if isinstance(thread, Missing) or thread.value is None:
        return Unread("who holds the interpreter lock")
    holds = sum(view.owns_gil for view in thread.value.views)
    sentence = f"it held the interpreter lock in {holds} of {len(thread.value.views)} stacks"
    if holds * 2 > len(thread.value.views):
        return Present(sentence)
    if _asks_for_files(thread.value):
        return Present(f"{sentence}, and lets go of it only to ask for files")
    return Absent(sentence)


def _stands_in_one_call(case: Case) -> Outcome:
    """It stood at one instruction all the time, so that the native code under it works: for what cannot be seen.

    A collector of garbage that goes through millions of objects looks like that. Where the interpreter keeps no
    instruction that could be read (before CPython 3.11), a loop in Python is told by its stacks alone.
    """
    thread, places = spinning_thread(case.patient), case.patient.places
    if isinstance(thread, Known) and thread.value is None:
        return Absent("no Python thread burns CPU")
    if isinstance(places, Missing) and places.reason == "unsupported":
        return Absent("the instruction of this interpreter cannot be read")
    if isinstance(thread, Missing) or isinstance(places, Missing) or thread.value is None:
        return Unread("whether one native call takes its time")
    if stands_in_one_call(places.value, thread.value.tid):
        return Unread("what the native code does that it calls: it stood at one instruction in every look")
    return Absent("no reading shows that native code takes its time")


def is_in(*activities: str) -> Sign:
    """Excluding: the burning thread is in code that may burn CPU for its own good reasons."""

    def sign(case: Case) -> Outcome:
        thread = spinning_thread(case.patient)
        if isinstance(thread, Missing):
            return Unread.of(thread, f"what {signs.name_of(case.patient.process)} runs")
        if thread.value is None:
            return Absent("no Python thread burns CPU")
        seen = thread.value
        if seen.ever_does(*activities):
            return Present(f"the thread that burns CPU is in {' or '.join(activities)}: {signs.where(seen)}")
        return Absent(f"the thread that burns CPU is not in {' or '.join(activities)}")

    sign.__doc__ = f"The thread that burns CPU is in {' or '.join(activities)}."
    return sign


def polls_for_requests(case: Case) -> Outcome:
    """Excluding: a scheduler's event loop that runs no batch polls for requests, at 97 % of a core when healthy."""
    thread = spinning_thread(case.patient)
    if isinstance(thread, Missing):
        return Unread.of(thread, f"what {signs.name_of(case.patient.process)} runs")
    if thread.value is None:
        return Absent("no Python thread burns CPU")
    seen = thread.value
    if (place := lost_below_event_loop(case.patient, seen)) is not None:
        return Absent(f"it stays in {signs.place_of(place.frame)}, which its event loop called")
    if seen.always_does("event-loop", "idle-poll") and not seen.always_does("forward"):
        return Present(f"it goes round its event loop: {signs.where(seen)}")
    return Absent("it is not in an event loop that goes round")


POLL_SYSTEM_RATIO = 0.1
"""Share of CPU time in the kernel up to which a loop does not poll by system calls: loops of plain Python stay under
0.03, a poll(2) without time to wait in a Python loop shows 0.3 and more. Arbitrary between them."""


def cannot_be_a_poll(thread: ThreadMotion, case: Case) -> Outcome:
    """The loop cannot be one that asks for requests: an idle server of an unknown engine may burn a core doing so.

    Rule: the engine's own idle loop is known; or the loop does not enter the kernel; or the process has nothing open
    on which a request could come, and another rank waits: memory that processes share is no descriptor. Fails for a
    server of an unknown engine whose ranks poll shared memory while one of them waits on a descriptor.
    """
    if idle_is_known(case.features):
        return Present("the engine's idle loop is known, and it is not that")
    flow = case.patient.flow
    if isinstance(flow, Known) and isinstance(flow.value.io_bytes, Known) and flow.value.io_bytes.value > 0:
        return Unread("it reads or writes a little now and then: it may be alive")
    system = thread.system_ratio
    if isinstance(system, Known) and system.value <= POLL_SYSTEM_RATIO:
        return Present(f"it does not poll: {system.value:.0%} of its CPU time is the kernel's")
    return _has_nothing_to_ask(case)


def _has_nothing_to_ask(case: Case) -> Outcome:
    if isinstance(case.patient.files, Missing):
        return Unread.of(case.patient.files, "whether it polls for requests")
    if any(file.kind in _CARRIES_REQUESTS and "r" in file.access for file in case.patient.files.value):
        return Unread("it may be polling for requests: it has a socket or a pipe on which they could come")
    if waiting_rank(case) is None:
        return Unread("it may be polling memory that it shares with another process, and no other rank waits")
    return Present("it has nothing open on which a request could come, and another rank waits")


_EVENT_LOOPS = ("asyncio/base_events.py", "asyncio/events.py", "selectors.py", "socketserver.py", "zmq/sugar/socket.py")
"""Files whose functions wait for somebody else's call or data, in a loop that asks without pause where it has to."""


def _turns_an_event_loop(thread: ThreadHistory) -> Frame | None:
    """Return the frame of an event loop, or of a poll, that is the loop itself or is called from it."""
    loop = thread.loop()
    for view in thread.views if loop is not None else ():
        for frame in view.stack:
            if any(is_file(frame.file, file) for file in _EVENT_LOOPS):
                return frame
            if loop is not None and (frame.function, frame.file) == (loop.frame.function, loop.frame.file):
                break
    return None


_CARRIES_REQUESTS = frozenset({"socket", "pipe", "tty", "anon", "other"})


def _is_no_poll(case: Case) -> Outcome:
    """It cannot be an idle server that asks for requests again and again."""
    if (endless := _ends_for_nobody(case)) is not None:
        return endless
    thread = spinning_thread(case.patient)
    if isinstance(thread, Known) and thread.value is not None and (turns := _turns_an_event_loop(thread.value)):
        return Unread(f"it may be an event loop that goes round: {signs.place_of(turns)}")
    clocks = case.patient.clocks
    if isinstance(thread, Missing) or isinstance(clocks, Missing) or thread.value is None:
        return Unread("whether it polls for requests")
    if _asks_for_files(thread.value) and (rank := waiting_rank(case)) is not None:
        return Present(f"it asks for files again and again, not for requests, and {signs.name_of(rank.process)} waits")
    return cannot_be_a_poll(clocks.value[thread.value.tid], case)


def _asks_for_files(thread: ThreadHistory) -> bool:
    """Tell whether the loop calls nothing but questions for files, and was met in them more often than not.

    Fails for a server that takes its requests from a folder, without pause, while a rank of it waits for it.
    """
    loop = thread.loop()
    if loop is None or any(
        _function(without_questions(view.stack)[0]) != _function(loop.frame) for view in thread.views
    ):
        return False
    return sum(without_questions(view.stack) != view.stack for view in thread.views) * 2 > len(thread.views)


def _function(frame: Frame) -> tuple[str, str]:
    return frame.function, frame.file


def _ends_for_nobody(case: Case) -> Present | None:
    """Look for a loop without any exit, in a process in which nothing else could end it or go on.

    Why it works: such a loop ends by a signal's handler or by another thread alone. A process that loops to keep other
    threads or its children alive is left out.
    """
    member, thread = case.patient, spinning_thread(case.patient)
    if isinstance(thread, Missing) or thread.value is None or isinstance(member.places, Missing):
        return None
    if not never_ends(member.places.value, thread.value.tid) or isinstance(member.waits, Missing):
        return None
    has_children = any(other.process.ppid == member.key.pid for other in case.features.members.values())
    if has_children or handler_of(member, ORDERS) is not None:
        return None
    if every_other_thread_is_parked(member, thread.value.tid) != Known(True):
        return None
    return Present(f"no instruction of its loop leaves it, and nothing else in {signs.name_of(member.process)} runs")


def _cannot_end(case: Case) -> Outcome:
    """A server waits for it, or its loop has no exit and nothing else in its process could end it."""
    if (endless := _ends_for_nobody(case)) is not None:
        return endless
    return is_waited_for(case)


def _culprits(case: Case) -> tuple[Culprit, ...]:
    thread = spinning_thread(case.patient)
    if isinstance(thread, Missing) or thread.value is None:
        return ()
    return (signs.culprit(case.patient, f"loops in {_place(thread.value)}", thread.value.tid),)


def _headline(case: Case) -> str:
    thread = spinning_thread(case.patient)
    place = _place(thread.value) if isinstance(thread, Known) and thread.value is not None else "its code"
    return f"{signs.name_of(case.patient.process)} goes round in {place} and nothing comes of it."


HYPOTHESIS = Hypothesis(
    id="HD101",
    name="python-busy-loop",
    verdict="busy-wait",
    suspects=signs.each_mover,
    essential=(
        _burns,
        signs.nothing_progresses,
        _stays_in_one_function,
        _holds_the_gil,
        _is_no_poll,
        signs.positive_or_patience(_cannot_end),
        signs.readings_are_steady,
    ),
    supporting=(_holds_the_gil, signs.log_is_silent_too_long, requests_stand),
    excluding=(polls_for_requests, is_in("import", "compile"), _stands_in_one_call, signs.nobody_died),
    headline=_headline,
    culprits=_culprits,
    action="Read the function named above for a loop whose condition cannot come true; end this launch.",
    playbook="python-busy-loop",
)
