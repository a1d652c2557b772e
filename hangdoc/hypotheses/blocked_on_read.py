"""HD204: a rank waits in a read, or in opening a FIFO, and nobody is there to write."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.features import Member
from hangdoc.features.launch_waits import standing_links
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._chains import end_name
from hangdoc.hypotheses._waits import (
    ORDERS,
    every_other_thread_is_parked,
    handler_of,
    idle_is_known,
    place,
    sits_in,
    stuck_in,
    waits_for_others,
)
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.fd import OpenFile
from hangdoc.model.reading import Known, Missing, Reading


def _read_file(member: Member) -> Reading[OpenFile | None]:
    """Return the descriptor that the stuck thread reads from."""
    stuck = stuck_in(member, "read")
    if isinstance(stuck, Missing):
        return stuck
    if stuck.value is None:
        return Known(None)
    if isinstance(member.files, Missing):
        return member.files
    number = stuck.value.system_call.args[0]
    return Known(next((file for file in member.files.value if file.fd == number), None))


EVENTFD = "anon_inode:[eventfd]"
"""What a descriptor of an eventfd points at (fs/eventfd.c)."""

_FIFO_OPEN_CHANNEL = "wait_for_partner"
"""Kernel function in which open(2) of a FIFO sleeps until somebody opens the other end (fs/pipe.c, fifo_open). Names of
wait channels change between kernels: where this one has another name, the sign is only not found."""


def _opens_fifo_alone(case: Case) -> Outcome | None:
    stuck = stuck_in(case.patient, "open")
    if isinstance(stuck, Missing) or stuck.value is None:
        return None
    if stuck.value.channel != _FIFO_OPEN_CHANNEL:
        return Unread("what it opens")
    sentence = "it opens a FIFO, and nobody has opened the other end"
    if not idle_is_known(case.features):
        return Unread(f"{sentence}: a server that takes commands from a FIFO does the same")
    return Present(sentence)


def _nobody_writes(case: Case) -> Outcome:
    """It reads from a pipe or eventfd that only the process itself can write to, and none of its threads can.

    Why it works: the reader sleeps in the read, and so cannot write. Without any writer the read would have ended: a
    pipe that no member holds open for writing is held by somebody outside, who sends commands now and then. Fails for
    a writer outside the launch that may not be looked at, and for a main thread whose signal handlers write.
    """
    if (opening := _opens_fifo_alone(case)) is not None:
        return opening
    file = _read_file(case.patient)
    if isinstance(file, Missing):
        return Unread.of(file, "what it reads from")
    if file.value is None:
        return Absent("what it reads from is not known")
    if file.value.target == EVENTFD:
        return _eventfd(case)
    if file.value.kind != "pipe":
        return Absent(f"it reads from a {file.value.kind}: who should write is not known")
    return _writers(case, file.value)


def _writers(case: Case, pipe: OpenFile) -> Outcome:
    writers = []
    for member in case.features.members.values():
        if isinstance(member.files, Missing):
            return Unread.of(member.files, f"open files of {signs.name_of(member.process)}")
        if any(other.target == pipe.target and "w" in other.access for other in member.files.value):
            writers.append(member)
    others = [signs.name_of(member.process) for member in writers if member.key != case.patient.key]
    if others:
        return Absent(f"{', '.join(others)} can still write to it")
    if not pipe.target.startswith("pipe:") and not idle_is_known(case.features):
        return Unread("it reads from a FIFO with a name, which anybody may open and write to")
    if (beyond := _writes_from_outside(case)) is not None:
        return beyond
    if not writers:
        return Unread(f"it reads from {signs.short_file(pipe.target)}, which somebody outside the launch holds")
    sentence = f"it reads from {signs.short_file(pipe.target)}, and only the reader itself holds its write end"
    return Present(sentence) if idle_is_known(case.features) else _if_no_thread_writes(case, sentence)


def _writes_from_outside(case: Case) -> Unread | None:
    """Look for a process outside the launch that has the writing end, too: it may write whenever it likes."""
    links, stuck = case.patient.links, stuck_in(case.patient, "read")
    if isinstance(links, Missing):
        return Unread.of(links, "who outside the launch can still write to it")
    tid = stuck.value.tid if isinstance(stuck, Known) and stuck.value is not None else None
    own = [link.ends for link in links.value[-1].links if (link.tid, link.through) == (tid, "pipe")]
    for ends in own:
        if isinstance(ends, Missing):
            return Unread.of(ends, "who outside the launch can still write to it")
        for end in ends.value:
            if end.process not in case.features.members:
                return Unread(f"{end_name(case.features, end)}, outside the launch, can still write to it")
    return None


def _eventfd(case: Case) -> Outcome:
    """Tell whether anybody else has the eventfd: whoever has it may write to it, and threads use one among them."""
    links, stuck = standing_links(case.patient), stuck_in(case.patient, "read")
    if isinstance(links, Missing):
        return Unread.of(links, "who else has the eventfd that it reads from")
    tid = stuck.value.tid if isinstance(stuck, Known) and stuck.value is not None else None
    link = next((one for one in links.value if (one.tid, one.through) == (tid, "eventfd")), None)
    if link is None:
        return Unread("who else has the eventfd that it reads from")
    if isinstance(link.ends, Missing):
        return Unread.of(link.ends, "who else has the eventfd that it reads from")
    others = [end_name(case.features, end) for end in link.ends.value if end.process != case.patient.key]
    if others:
        return Absent(f"{', '.join(others)} can still write to the eventfd that it reads from")
    return _if_no_thread_writes(case, "it reads from an eventfd, and only the reader itself holds it")


def _if_no_thread_writes(case: Case, sentence: str) -> Outcome:
    number = handler_of(case.patient, ORDERS)
    if number is not None:
        return Unread(f"its own handler of signal {number} may write to it")
    stuck = stuck_in(case.patient, "read")
    tid = stuck.value.tid if isinstance(stuck, Known) and stuck.value is not None else None
    parked = every_other_thread_is_parked(case.patient, tid)
    if isinstance(parked, Missing):
        return Unread.of(parked, "what the other threads of the process wait in")
    return Present(sentence) if parked.value else Unread("another thread of the process might still write to it")


def _culprits(case: Case) -> tuple[Culprit, ...]:
    stuck = stuck_in(case.patient, "read", "open")
    if isinstance(stuck, Missing) or stuck.value is None:
        return ()
    tid = stuck.value.tid
    return (signs.culprit(case.patient, f"waits in a {stuck.value.call} in {place(case.patient, tid)}", tid),)


def _headline(case: Case) -> str:
    stuck = stuck_in(case.patient, "read", "open")
    tid = stuck.value.tid if isinstance(stuck, Known) and stuck.value is not None else case.patient.key.pid
    return f"{signs.name_of(case.patient.process)} waits for data that nobody writes, in {place(case.patient, tid)}."


HYPOTHESIS = Hypothesis(
    id="HD204",
    name="blocked-on-read",
    verdict="blocked",
    suspects=signs.each_mover,
    essential=(
        sits_in("in a read or open", "read", "open"),
        signs.does("still"),
        signs.nothing_progresses,
        signs.positive_or_patience(_nobody_writes),
        signs.readings_are_steady,
    ),
    supporting=(_nobody_writes, signs.log_is_silent_too_long),
    excluding=(waits_for_others, signs.nobody_died),
    headline=_headline,
    culprits=_culprits,
    action="See what the descriptor named above is, and who should have written to it.",
    playbook="blocked-on-read",
)
