"""HD205: a rank waits in a write to a pipe, its own output or another, that is full because nobody drains it."""

from __future__ import annotations

from collections.abc import Sequence

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import Waiting, waiting
from hangdoc.features.features import Member
from hangdoc.features.launch_waits import rank_that_waits_for, standing_graph
from hangdoc.features.links import likely_ends
from hangdoc.features.outputs import OUTPUT_DESCRIPTORS
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._chains import culprit_at, end_name, who_moves
from hangdoc.hypotheses._standstill import may_go_on, process_may_go_on
from hangdoc.hypotheses._waits import ORDERS, every_other_thread_is_parked, handler_of, place, timer_of_its_own
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.link import Link, LinkEnd
from hangdoc.model.reading import Known, Missing, Reading


def _stuck(case: Case) -> Reading[Waiting | None]:
    """Return the first Python thread that sat in a write all the time; a queue's feeder, which waits by design, too."""
    if isinstance(case.patient.dumps, Missing):
        return case.patient.dumps
    threads = sorted(case.patient.dumps.value.threads.values(), key=lambda one: (one.is_helper, one.tid))
    unread: Missing | None = None
    for thread in threads:
        wait = waiting(case.patient, thread.tid)
        if isinstance(wait, Missing):
            unread = wait
        elif wait.value is not None and wait.value.call == "write":
            return wait
    return unread or Known(None)


def _writes(case: Case) -> Outcome:
    """A thread of it waited in a write all the time."""
    stuck, name = _stuck(case), signs.name_of(case.patient.process)
    if isinstance(stuck, Missing):
        return Unread.of(stuck, f"what {name} waits in")
    if stuck.value is None:
        return Absent(f"no thread of {name} waits in a write")
    return Present(f"thread {stuck.value.tid} of {name} waits in a write: {place(case.patient, stuck.value.tid)}")


def _pipe_is_full(case: Case) -> Outcome:
    """The pipe it writes to holds as much as it can."""
    stuck = _stuck(case)
    if isinstance(stuck, Missing):
        return Unread.of(stuck, "what it waits in")
    if stuck.value is None:
        return Absent("it is not in a write")
    number = stuck.value.system_call.args[0]
    if not any(output.process.key == case.patient.key for output in case.features.outputs):
        return Unread(f"outputs of {signs.name_of(case.patient.process)}")
    for output in case.features.outputs:
        if output.process.key == case.patient.key and output.file.fd == number:
            if isinstance(output.file.pipe, Missing):
                return Unread.of(output.file.pipe, f"fill of descriptor {number}")
            fill = output.file.pipe.value
            sentence = f"descriptor {number} is a pipe with {fill.queued_bytes:,} of {fill.capacity_bytes:,} bytes"
            return _keeps_somebody_waiting(case, number, sentence) if fill.is_full else Absent(sentence)
    return _unlisted(case, number)


def _unlisted(case: Case, number: int) -> Outcome:
    files = case.patient.files
    if isinstance(files, Missing):
        return Unread.of(files, f"what descriptor {number} is")
    if any(file.fd == number and file.kind == "pipe" for file in files.value):
        return Unread(f"fill of descriptor {number}")
    return Absent(f"descriptor {number} is no pipe")


def _keeps_somebody_waiting(case: Case, number: int, full: str) -> Outcome:
    """Tell whether it matters that a pipe is full: of an output always, of another where somebody waits for its writer.

    A pipe between processes is full as well when all is well: whoever prepares work ahead of an idle reader waits so.
    """
    if number in OUTPUT_DESCRIPTORS or (signs.is_server(case.features) and case.patient in case.features.movers):
        return Present(full)
    waiter = rank_that_waits_for(case.features, case.patient)
    if (reader := _reader_that_waits_for_its_end(case)) is not None:
        return Present(f"{full}, and {signs.name_of(reader.process)}, which alone could read it, waits for its end")
    if waiter is None:
        return Unread(f"{full}; who reads it may have nothing to do, and nobody else is seen to wait")
    return Present(f"{full}, and {signs.name_of(waiter.process)} waits for its writer")


def _reader_that_waits_for_its_end(case: Case) -> Member | None:
    """Return who alone could read the pipe, if it waits for the end of the writer, and no other thread of it could."""
    readers = _readers(case)
    if isinstance(readers, Missing) or len(readers.value) != 1:
        return None
    reader = case.features.members.get(readers.value[0].process)
    waits = any(
        not edge.weak
        and edge.through == "child"
        and (edge.from_pid, edge.from_tid, edge.to_pid) == (readers.value[0].process.pid,) * 2 + (case.patient.key.pid,)
        for edge in standing_graph(case.features).edges
    )
    if reader is None or not waits or handler_of(reader, ORDERS) is not None:
        return None
    return reader if every_other_thread_is_parked(reader, reader.key.pid) == Known(True) else None


def _nobody_empties_it(case: Case) -> Outcome:
    """The pipe holds exactly as much as at the begin of the window.

    That the writer did not wake would not do: the kernel wakes it only when a whole page is free (fs/pipe.c,
    pipe_read), which a reader of small pieces reaches after a long time.
    """
    stuck = _stuck(case)
    if isinstance(stuck, Missing):
        return Unread.of(stuck, "what it waits in")
    if stuck.value is None:
        return Absent("it is not in a write")
    number = stuck.value.system_call.args[0]
    for output in case.features.outputs:
        if output.process.key == case.patient.key and output.file.fd == number:
            if isinstance(output.grown_bytes, Missing):
                return Unread.of(output.grown_bytes, "whether somebody reads from the pipe")
            if output.grown_bytes.value:
                return Absent("the fill of the pipe changes: somebody reads from it")
            return Present("nobody took one byte out of it")
    return Unread(f"fill of descriptor {number}")


def _stuck_tid(case: Case) -> int | None:
    stuck = _stuck(case)
    return None if isinstance(stuck, Missing) or stuck.value is None else stuck.value.tid


def _link(case: Case) -> Reading[Link]:
    """Return who could end the write. The newest reading will do: that the write stands is known from every round."""
    links, tid = case.patient.links, _stuck_tid(case)
    if isinstance(links, Missing):
        return links
    link = next((one for one in links.value[-1].links if one.tid == tid and one.through == "pipe"), None)
    if link is None:
        return Missing("links", "not-taken", "the write was not followed")
    return link.ends if isinstance(link.ends, Missing) else Known(link)


def _readers(case: Case) -> Reading[tuple[LinkEnd, ...]]:
    """Return whoever else has the reading end open: of a pipe that a fork copied, those that mean to use it."""
    link = _link(case)
    if isinstance(link, Missing):
        return link
    return Known(tuple(end for end in likely_ends(link.value) if end.process != case.patient.key))


def _no_reader_goes_on(case: Case) -> Outcome:
    """Nobody who has the reading end open is only busy elsewhere for a while: that would be ordinary back-pressure.

    Every thread of each of them has to wait without a time limit for another of them or for the writer, or be stopped
    or dead. A reader outside the launch may rest on purpose and read on: unless a signal has stopped it, or it only
    waits for the end of a member. Of a server that is known a rank whose output stands counts whoever reads it.
    """
    if signs.is_server(case.features):
        return Present("a rank of the server cannot write")
    if (handler := timer_of_its_own(case.patient, case.features)) is not None:
        return Unread(handler)
    link = _link(case)
    if isinstance(link, Missing):
        return Unread.of(link, "who has the reading end of the pipe open")
    ends = link.value.ends.value if isinstance(link.value.ends, Known) else ()
    others = tuple(end.process for end in ends if end.process != case.patient.key)
    found = may_go_on(case.features, (key for key in others if key in case.features.members), (case.patient.key,))
    if found is None and len(others) < len(ends):
        own = process_may_go_on(case.features, case.patient, but=_stuck_tid(case))
        found = own if isinstance(own, str) else None
    found = found or _rests_outside(case, ends)
    if found is not None:
        return Unread(f"the reader of the pipe may only be slow: {found}")
    return Present("nobody who has its reading end open can go on")


def _rests_outside(case: Case, ends: Sequence[LinkEnd]) -> str | None:
    """Say which reader outside the launch may read on; a longer look shows whether it takes anything."""
    members = {key.pid for key in case.features.members}
    for end in ends:
        stands = end.stopped or end.awaited_pid in members
        if end.process not in case.features.members and not stands:
            return f"{end_name(case.features, end)}, outside the launch, may read on; a longer look would tell"
    return None


def _does_not_read(case: Case) -> str:
    """Say who should read the pipe and does not."""
    readers = _readers(case)
    if isinstance(readers, Missing):
        return f"who has its reading end open is not known ({readers.reason})"
    names = ", ".join(end_name(case.features, end) for end in readers.value)
    if not names:
        return "nobody else has its reading end open"
    return f"{names}, which {'has' if len(readers.value) == 1 else 'have'} its reading end open, does not read it"


def _culprits(case: Case) -> tuple[Culprit, ...]:
    """Return who has to move: the readers, or whom they wait for; the writer when nobody else could ever read.

    A reader that waits for the end of its writer is who has to give in, for the writer cannot; not so the launcher of a
    server that is known, which waits by design.
    """
    joins = None if signs.is_server(case.features) else _reader_that_waits_for_its_end(case)
    if joins is not None:
        writer = signs.name_of(case.patient.process)
        return (signs.culprit(joins, f"waits for the end of {writer} and does not read what it writes"),)
    readers = _readers(case)
    if isinstance(readers, Missing):
        return ()
    writer, pids = signs.name_of(case.patient.process), {end.process.pid for end in readers.value}
    threads = tuple(one for one in who_moves(case.features, pids) if one[0] != case.patient.key.pid)
    if threads:
        reads, holds = (
            f"does not read the full output pipe of {writer}",
            f"holds up the reader of the output of {writer}",
        )
        return tuple(culprit_at(case.features, one, reads if one[0] in pids else holds) for one in threads)
    return (
        signs.culprit(case.patient, f"the pipe it writes to is full, and {_does_not_read(case)}", _stuck_tid(case)),
    )


def _headline(case: Case) -> str:
    writer, where = signs.name_of(case.patient.process), place(case.patient, _stuck_tid(case) or case.patient.key.pid)
    stuck = _stuck(case)
    number = stuck.value.system_call.args[0] if isinstance(stuck, Known) and stuck.value is not None else 1
    what = "its output" if number in OUTPUT_DESCRIPTORS else f"to descriptor {number}"
    return f"{writer} cannot write {what} (in {where}): the pipe is full, and {_does_not_read(case)}."


HYPOTHESIS = Hypothesis(
    id="HD205",
    name="blocked-on-full-pipe",
    verdict="blocked",
    suspects=lambda features: tuple(features.members.values()),
    essential=(
        _writes,
        _pipe_is_full,
        _nobody_empties_it,
        signs.positive_or_patience(_no_reader_goes_on),
        signs.nothing_progresses,
        signs.readings_are_steady,
    ),
    supporting=(_pipe_is_full, _writes),
    excluding=(signs.nobody_died,),
    headline=_headline,
    culprits=_culprits,
    action="Make whoever has the reading end of that pipe read it, or start the launch with its output in a file.",
    playbook="blocked-on-full-pipe",
)
