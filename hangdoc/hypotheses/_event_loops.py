"""Whether a scheduler goes round its event loop, or stays in one function that the loop called."""

from __future__ import annotations

import re

from hangdoc.features.dumps import ThreadHistory
from hangdoc.features.features import Member
from hangdoc.features.frames import bare_name, is_file
from hangdoc.features.loops import Loop
from hangdoc.model.reading import Known
from hangdoc.model.stack import Frame, Stack

FEWEST_TO_STAY = 5
"""Stacks that must all lie in one function under the event loop before a scheduler counts as lost in it. An idle loop
was seen in up to four different functions; that one of them, a tenth of the time, is met five times in a row comes
once in 100,000 looks. Arbitrary."""

LONG_WALK_S = 8.0
"""Seconds over which these stacks have to be spread: evicting from a large cache may take some. Arbitrary."""

_TAKES_REQUESTS = re.compile(
    r"recv_\w+|ingest_requests|process_input_requests|_pull_raw_reqs|_broadcast_reqs_across_ranks|broadcast_pyobj"
    r"|on_idle|self_check_during_idle|maybe_sleep\w*|sock_recv|recv|poll"
)
"""Functions in which an idle scheduler asks for requests, checks itself or sleeps."""

_EVENT_LOOP = re.compile(r"event_loop_\w+")


def seen_s(member: Member) -> float:
    """Return over how many seconds the stacks of a member were taken; 0 without any."""
    return member.dumps.value.seconds if isinstance(member.dumps, Known) else 0.0


def lost_below_event_loop(member: Member, thread: ThreadHistory) -> Loop | None:
    """Return the function under the event loop that did not return for so long that a scheduler is lost in it."""
    if len(thread.views) < FEWEST_TO_STAY or seen_s(member) < LONG_WALK_S:
        return None
    return place_below_event_loop(thread)


def place_below_event_loop(thread: ThreadHistory) -> Loop | None:
    """Return the function under the event loop in which all stacks lie, or None when it goes round.

    Rule: the one function that every stack lies in is inside the event loop's frame and is not where requests are
    taken in. Why it works: a loop that turns is met in several functions, and in an idle server mostly where requests
    come from. Fails for an idle server that is met in the same function each time by chance.
    """
    loop = thread.loop()
    if loop is None or not all(_is_below(view.stack, loop.frame) for view in thread.views):
        return None
    return None if any(_takes_requests(view.stack) for view in thread.views) else loop


def _is_below(stack: Stack, frame: Frame) -> bool:
    """Tell whether a function stands inside the event loop's frame, which comes further out."""
    places = [at for at, one in enumerate(stack) if _EVENT_LOOP.fullmatch(bare_name(one.function))]
    own = [at for at, one in enumerate(stack) if (one.function, one.file) == (frame.function, frame.file)]
    return bool(places) and bool(own) and own[0] < places[0] and not is_file(frame.file, "threading.py")


def _takes_requests(stack: Stack) -> bool:
    return any(_TAKES_REQUESTS.fullmatch(bare_name(frame.function)) for frame in stack)
