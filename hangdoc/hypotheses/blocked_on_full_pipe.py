"""HD205: a rank waits in a write to its own output, a pipe that is full because nobody drains it."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._waits import place, sits_in, stuck_in
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.reading import Missing


def _pipe_is_full(case: Case) -> Outcome:
    """The pipe it writes to holds as much as it can."""
    stuck = stuck_in(case.patient, "write")
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
            return Present(sentence) if fill.is_full else Absent(sentence)
    return Absent(f"descriptor {number} is not its standard output or error")


def _does_not_wake(case: Case) -> Outcome:
    """The writing thread did not run once: whoever reads a little of a full pipe wakes its writer."""
    stuck = stuck_in(case.patient, "write")
    motion = case.patient.motion
    clocks = motion if isinstance(motion, Missing) else motion.value.threads
    if isinstance(stuck, Missing):
        return Unread.of(stuck, "what it waits in")
    if isinstance(clocks, Missing):
        return Unread.of(clocks, "whether the writing thread wakes")
    clock = None if stuck.value is None else clocks.value.get(stuck.value.tid)
    if clock is None:
        return Absent("it is not in a write")
    return Present("its writer did not wake") if clock.is_still else Absent("its writer wakes: somebody reads")


def _reader(case: Case) -> str:
    """Say which member has the reading end open; with fork several may have inherited it."""
    stuck = stuck_in(case.patient, "write")
    number = None if isinstance(stuck, Missing) or stuck.value is None else stuck.value.system_call.args[0]
    outputs = [output for output in case.features.outputs if output.process.key == case.patient.key]
    pipes = {output.file.target for output in outputs if output.file.fd == number}
    readers, unread = [], False
    for member in case.features.members.values():
        if isinstance(member.files, Missing):
            unread = True
        elif member is not case.patient and any(f.target in pipes and "r" in f.access for f in member.files.value):
            readers.append(signs.name_of(member.process))
    if readers:
        return f"its reading end is open in {', '.join(readers)}"
    return "who has its reading end open is not known" if unread else "no other member has its reading end open"


def _culprits(case: Case) -> tuple[Culprit, ...]:
    stuck = stuck_in(case.patient, "write")
    tid = None if isinstance(stuck, Missing) or stuck.value is None else stuck.value.tid
    reason = f"its output pipe is full, and {_reader(case)}: whoever has it has to read"
    return (signs.culprit(case.patient, reason, tid),)


HYPOTHESIS = Hypothesis(
    id="HD205",
    name="blocked-on-full-pipe",
    verdict="blocked",
    suspects=lambda features: tuple(features.members.values()),
    essential=(
        sits_in("in a write", "write"),
        _pipe_is_full,
        _does_not_wake,
        signs.nothing_progresses,
        signs.readings_are_steady,
    ),
    supporting=(_pipe_is_full, sits_in("in a write", "write")),
    excluding=(signs.nobody_died,),
    headline=lambda case: (
        f"{signs.name_of(case.patient.process)} cannot write its output: the pipe is full and nobody reads it"
        f" (in {place(case.patient, case.patient.key.pid)}); {_reader(case)}."
    ),
    culprits=_culprits,
    action="Make the process that started the launch read its output, or send it to a file.",
    playbook="blocked-on-full-pipe",
)
