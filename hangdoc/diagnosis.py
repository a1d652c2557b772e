"""Every hypothesis over a trace, weighed and ranked; none is dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import replace

from hangdoc import discovery
from hangdoc.criteria import RANK, Hypothesis, Outcomes, Weighed, weigh
from hangdoc.errors import HangdocError
from hangdoc.features.baseline import Baseline, comparable
from hangdoc.features.edges import Edge
from hangdoc.features.features import Beyond, Features, Member, features, mover_keys
from hangdoc.features.index import Index
from hangdoc.features.lacking import CUT, lacks_of, missing_readings, rounds_of
from hangdoc.features.launch_waits import latest_edges
from hangdoc.features.limits import Remaining, remaining
from hangdoc.features.links import looked_twice
from hangdoc.features.outputs import OutputFile
from hangdoc.features.patience import no_progress_s
from hangdoc.features.ranks import compare, without_wrappers
from hangdoc.features.slices import EQUAL_SLICES, steady_window
from hangdoc.features.standing import standing_s
from hangdoc.from_log import log_report, undetermined_log
from hangdoc.hypotheses._ending import end_of_all
from hangdoc.hypotheses._signs import place_of
from hangdoc.log_steps import deciding_steps
from hangdoc.model.diagnosis import (
    Culprit,
    Diagnosis,
    Finding,
    GpuState,
    GpuUse,
    LimitState,
    MissingReading,
    NextStep,
    Output,
    OutputState,
    ProcessState,
    StackClass,
    Target,
    TargetKind,
    Verdict,
    Wait,
    WaitEnd,
)
from hangdoc.model.engine import Engine
from hangdoc.model.gpu import Gpus
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.trace.records import Trace

T = TypeVar("T")

PRECEDENCE: tuple[Verdict, ...] = ("crashed", "busy-wait", "blocked", "hung", "slow-start", "healthy", "undetermined")
"""Which verdict leads among equal grades: the one that explains the others."""


def diagnose(trace: Trace, kind: TargetKind = "live", baseline: Baseline | None = None) -> Diagnosis:
    """Return the diagnosis of a trace; the same one every time. baseline: good starts that its log is compared with.

    HangdocError (exit 2) for a trace without a round: nothing was read that could be diagnosed.
    """
    if not trace.snapshots:
        raise HangdocError("the trace was cut before its first round was whole", "record again")
    index = Index(trace)
    engine = discovery.engine(trace.header.launch.engine)
    movers = mover_keys(trace.snapshots[-1].processes)
    window, steady = steady_window(trace, movers, index)
    good = _good_starts(trace, engine, baseline)
    beyond = Beyond(standing_s(trace, index, movers, window.last), good, index)
    seen = features(trace, engine, window, steady=steady, beyond=beyond)
    ranked = _ranked(seen)
    leader = ranked[0] if RANK[ranked[0].grade] >= RANK["likely"] else None
    culprits = tuple(map(_known_only, leader.culprits)) if leader is not None else ()
    missing = (*missing_readings(index, seen), *lacks_of(trace), *_other_engine(baseline, good, engine.name))
    return Diagnosis(
        taken_wall_ns=trace.snapshots[-1].wall_ns,
        target=_target(trace, kind),
        verdict=leader.hypothesis.verdict if leader is not None else "undetermined",
        grade=leader.grade if leader is not None else "undetermined",
        phase=seen.phase,
        headline=leader.headline if leader is not None else _undetermined_headline(seen, ranked, trace),
        culprits=culprits,
        hypotheses=tuple(_finding(weighed) for weighed in ranked),
        waits=_waits(seen, ranked),
        next_steps=_next_steps(seen, ranked, leader, missing),
        outputs=tuple(_output(output, trace.snapshots[-1].wall_ns) for output in seen.outputs),
        gpus=_gpus(seen.gpus),
        missing=missing,
        window_s=round(window.seconds, 3),
        processes=tuple(_process(member) for member in seen.members.values()),
        stack_classes=_stack_classes(seen),
        log=log_report(seen),
        no_progress_s=stood.value if isinstance(stood := no_progress_s(seen), Known) else None,
        limits=tuple(_limit(one) for one in remaining(seen, engine)),
    )


def _good_starts(trace: Trace, engine: Engine, baseline: Baseline | None) -> Baseline | None:
    """Return the good starts of the same engine, size and, where there are any, version."""
    version = trace.header.launch.engine_version
    same = baseline and baseline.of(engine.name, comparable(trace))
    return same and same.like(version.value if isinstance(version, Known) else "")


def _limit(one: Remaining) -> LimitState:
    left_s = one.left_s
    return LimitState(
        name=one.limit.name,
        seconds=one.seconds,
        left_s=None if left_s is None else max(0.0, left_s),
        latest_s=None if left_s is None else max(0.0, left_s + one.seconds * (one.limit.latest_ratio - 1)),
        ends=one.limit.ends,
    )


def _known_only(culprit: Culprit) -> Culprit:
    """Leave out the number that stands for a pid which the log does not tell."""
    if culprit.pid is None or culprit.pid > 0:
        return culprit
    return replace(culprit, pid=None, start_ticks=None, tid=None)


UNSURE = "; not for certain: it looks the same when nothing is wrong"
"""How the detail of a weak wait ends."""

MOST_WAITS = 50
"""Waits that the document lists. Arbitrary: eight ranks and their helpers have fewer that say something."""


def _waits(seen: Features, ranked: list[Weighed]) -> tuple[Wait, ...]:
    """Return the waits that likely hypotheses rest on, then the edges of the graph, strong ones first."""
    found = {
        (wait.from_.pid, wait.from_.tid, wait.to.pid, wait.through): wait
        for weighed in reversed(ranked)
        if RANK[weighed.grade] >= RANK["likely"]
        for wait in weighed.waits
    }
    for edge in latest_edges(seen):
        if len(found) < MOST_WAITS:
            found.setdefault((edge.from_pid, edge.from_tid, edge.to_pid, edge.through), _wait(edge))
    return tuple(found.values())


def _wait(edge: Edge) -> Wait:
    unsure = UNSURE if edge.weak else ""
    return Wait(
        from_=WaitEnd(pid=edge.from_pid, tid=edge.from_tid),
        to=WaitEnd(pid=edge.to_pid, tid=edge.to_tid),
        through=edge.through,
        detail=edge.detail + unsure,
    )


def settled(trace: Trace, diagnosing: Callable[[Trace], Diagnosis] = diagnose) -> bool:
    """Tell whether an observation may end: the last slices give a verdict, or no longer look can.

    diagnosing: returns the diagnosis of the trace, which somebody may have made already.
    """
    if len(trace.snapshots) <= EQUAL_SLICES:
        return False
    diagnosis = diagnosing(trace)
    if diagnosis.verdict in PEACE and trace.header.launch.engine == "generic":
        # Whoever works may be a helper beside ranks that wait for each other: that shows only in a second reading.
        return all(_waits_are_read(trace, diagnosis, key) for key in mover_keys(trace.snapshots[-1].processes))
    return diagnosis.verdict != "undetermined" or _stays_blind(trace, diagnosis)


PEACE: frozenset[Verdict] = frozenset({"slow-start", "healthy"})


def _waits_are_read(trace: Trace, diagnosis: Diagnosis, key: ProcessKey) -> bool:
    """Tell whether it was looked twice whom a process waits for, or that is refused for good."""
    refused = {(lack.probe, lack.pid) for lack in diagnosis.missing if lack.reason in _FOR_GOOD}
    return ("links", key.pid) in refused or looked_twice(trace, key)


def _stays_blind(trace: Trace, diagnosis: Diagnosis) -> bool:
    """Tell whether the stacks of every process that has to move are refused, or there are none to be had.

    Whom a process waits for can be told without its stacks, from two looks: these are waited for.
    """
    movers = mover_keys(trace.snapshots[-1].processes)
    refused = {lack.pid for lack in diagnosis.missing if lack.probe == "stacks" and lack.reason in _FOR_GOOD}
    return bool(movers) and all(key.pid in refused and _waits_are_read(trace, diagnosis, key) for key in movers)


_FOR_GOOD = frozenset({"denied", "not-installed", "unsupported"})
"""Reasons that do not go away by waiting."""


def hypotheses() -> tuple[Hypothesis, ...]:
    """Return every hypothesis, sorted by its identifier."""
    found: list[Hypothesis] = [module.HYPOTHESIS for module in discovery.modules("hangdoc.hypotheses")]
    return tuple(sorted(found, key=lambda hypothesis: hypothesis.id))


def _ranked(seen: Features) -> list[Weighed]:
    said = Outcomes(seen)
    weighed = [weigh(hypothesis, seen, said) for hypothesis in hypotheses()]
    return sorted(
        weighed,
        key=lambda one: (
            -RANK[one.grade],
            PRECEDENCE.index(one.hypothesis.verdict),
            -one.support,
            one.hypothesis.id,
        ),
    )


def _other_engine(given: Baseline | None, used: Baseline | None, engine: str) -> tuple[MissingReading, ...]:
    if given is None or used is not None:
        return ()
    of = ", ".join(sorted({start.engine for start in given.starts}))
    detail = f"the good starts are of {of}, this launch is of {engine}: they are not compared"
    remedy = f"give --baseline a good start of {engine}"
    return (MissingReading(probe="baseline", pid=None, reason="unsupported", detail=detail, remedy=remedy),)


def _target(trace: Trace, kind: TargetKind) -> Target:
    launch = trace.header.launch
    version = launch.engine_version.value if isinstance(launch.engine_version, Known) else None
    pid = launch.root.pid if launch.root.pid > 0 else None
    host, redacted = trace.header.host or None, kind == "trace" and trace.header.redaction == "tokens"
    return Target(kind=kind, pid=pid, host=host, engine=launch.engine, engine_version=version, redacted=redacted)


def _finding(weighed: Weighed) -> Finding:
    return Finding(
        id=weighed.hypothesis.id,
        name=weighed.hypothesis.name,
        verdict=weighed.hypothesis.verdict,
        grade=weighed.grade,
        for_=weighed.for_,
        against=weighed.against,
        missing=weighed.missing,
    )


def _undetermined_headline(seen: Features, ranked: list[Weighed], trace: Trace) -> str:
    if seen.is_log:
        return undetermined_log(seen)
    if not seen.members:
        return end_of_all(seen)
    open_ones = _open(ranked)
    if not open_ones:
        return "Nothing that was read says that it hangs, and nothing that it is healthy."
    if seen.window.last < EQUAL_SLICES:
        if not trace.complete:
            return f"The trace was cut after {rounds_of(trace)}, before the readings could agree."
        return "Stopped before the readings could agree: look again for a whole window."
    best = open_ones[0]
    lack = best.missing[0] if best.missing else "more readings"
    return f"Cannot tell yet. It may be {best.hypothesis.name}; still to be read: {lack}."


_MOST_STEPS = 3
"""Steps that a tired person still reads. Arbitrary."""


def _next_steps(
    seen: Features, ranked: list[Weighed], leader: Weighed | None, missing: tuple[MissingReading, ...]
) -> tuple[NextStep, ...]:
    if seen.is_log and (leader is None or leader.hypothesis.verdict == "hung"):
        return deciding_steps(seen, leader)
    if leader is not None:
        return (NextStep(playbook=leader.hypothesis.playbook, action=leader.action),)
    open_ones = _open(ranked)
    if not open_ones:
        return ()
    playbook = open_ones[0].hypothesis.playbook
    remedies = dict.fromkeys(lack.remedy for lack in missing if lack.remedy and lack.reason in _MENDABLE)
    cut = next((lack for lack in missing if lack.detail.startswith(CUT)), None)
    again = "Look again for longer" if cut is None else "Get the whole trace or record again"
    actions = [*list(remedies)[: _MOST_STEPS - 1], f"{again}, or confirm it by hand as the playbook says."]
    return tuple(NextStep(playbook=playbook, action=action) for action in actions)


_MENDABLE = frozenset({"denied", "not-installed"})
"""Reasons for which the remedy of a missing reading comes first: without the reading no longer look helps."""


def _open(ranked: list[Weighed]) -> list[Weighed]:
    """Return the hypotheses that are neither shown nor ruled out, by what speaks for each beyond what lacks.

    A block whose one decisive sign was found, as a member that is stopped, comes first: anybody would begin with it.
    """

    def order(one: Weighed) -> tuple[bool, int, int]:
        decisive = one.hypothesis.verdict == "blocked" and one.hypothesis.confirm_at == 1 and one.support > 0
        return not decisive, len(one.missing) - len(one.for_), len(one.missing)

    return sorted((weighed for weighed in ranked if weighed.grade == "undetermined"), key=order)


def _output(output: OutputFile, end_wall_ns: int) -> Output:
    file = output.file
    written_ns = file.modified_wall_ns
    silent_s = (end_wall_ns - written_ns.value) / 1e9 if isinstance(written_ns, Known) else None
    found = output.hidden.value if isinstance(output.hidden, Known) else None
    return Output(
        pid=output.process.key.pid,
        fd=file.fd,
        path=file.target,
        kind=file.kind,
        state=_output_state(output),
        hidden_bytes=None if found is None else found.size_bytes,
        hidden_tail=None if found is None else _value(found.tail),
        silent_s=None if silent_s is None else round(max(0.0, silent_s), 3),
    )


def _output_state(output: OutputFile) -> OutputState:
    """Return where the text is. A file has everything, or nothing is for it, only if the buffers were seen empty."""
    file = output.file
    found = output.hidden.value if isinstance(output.hidden, Known) else None
    if isinstance(file.pipe, Known) and file.pipe.value.is_full:
        return "pipe-full"
    if found is not None and found.size_bytes:
        return "held-back"
    if found is None or file.kind != "file":
        return "unknown"
    is_empty = isinstance(file.size_bytes, Known) and file.size_bytes.value == 0
    return "nothing-written" if is_empty else "flushed"


def _gpus(gpus: Reading[Gpus]) -> tuple[GpuState, ...] | None:
    if isinstance(gpus, Missing):
        return None
    return tuple(
        GpuState(
            index=gpu.index,
            name=gpu.name,
            used_bytes=_value(gpu.used_bytes),
            util_ratio=_value(gpu.util_ratio),
            power_w=_value(gpu.power_w),
            processes=None
            if isinstance(gpu.processes, Missing)
            else tuple(GpuUse(pid=one.pid, used_bytes=_value(one.used_bytes)) for one in gpu.processes.value),
        )
        for gpu in gpus.value.devices
    )


def _process(member: Member) -> ProcessState:
    motion = member.motion
    known = motion.value if isinstance(motion, Known) else None
    return ProcessState(
        pid=member.key.pid if member.key.pid > 0 else None,
        start_ticks=member.key.start_ticks if member.key.pid > 0 and member.key.start_ticks else None,
        role=member.process.role,
        rank=member.process.rank,
        state=None if known is None else known.state,
        phase=member.phase,
        cpu_ratio=None if known is None else _rounded(known.cpu_ratio),
        demand_ratio=None if known is None else _rounded(known.demand_ratio),
    )


MOST_FRAMES = 8
"""Frames of a class of stacks that the document has. Arbitrary: from the wait to what it belongs to."""


def _stack_classes(seen: Features) -> tuple[StackClass, ...]:
    return tuple(
        StackClass(
            pids=tuple(key.pid for key in one.members),
            ranks=tuple(seen.members[key].process.rank for key in one.members),
            motion=one.motion,
            frames=tuple(place_of(frame) for frame in without_wrappers(one.stack)[:MOST_FRAMES]),
            odd=one in compared.odd,
        )
        for compared in compare(seen)
        for one in compared.classes
    )


def _value(reading: Reading[T]) -> T | None:
    return reading.value if isinstance(reading, Known) else None


def _rounded(reading: Reading[float]) -> float | None:
    return round(reading.value, 3) if isinstance(reading, Known) else None
