"""The diagnosis: verdict, grade, phase, culprits, and every hypothesis with its evidence."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from hangdoc.model.fd import FdKind
from hangdoc.model.limit import LimitName
from hangdoc.model.log import Phase
from hangdoc.model.process import EngineName, Role
from hangdoc.model.reading import Reason

Verdict: TypeAlias = Literal["busy-wait", "blocked", "slow-start", "crashed", "healthy", "hung", "undetermined"]
Grade: TypeAlias = Literal["confirmed", "likely", "undetermined", "ruled-out"]
TargetKind: TypeAlias = Literal["live", "log", "trace"]
OutputState: TypeAlias = Literal["flushed", "held-back", "nothing-written", "pipe-full", "unknown"]

StackMotion: TypeAlias = Literal["frozen", "moving", "seen-once"]
"""Whether stacks changed between two dumps."""

HANG_VERDICTS: frozenset[Verdict] = frozenset({"busy-wait", "blocked", "hung", "crashed"})


class Target(Struct, frozen=True, kw_only=True):
    """What was looked at."""

    kind: TargetKind
    pid: int | None
    host: str | None
    engine: EngineName
    engine_version: str | None


class Culprit(Struct, frozen=True, kw_only=True):
    """Who has to move. pid is None for somebody who is not there at all (an absent node)."""

    pid: int | None
    start_ticks: int | None
    tid: int | None
    role: Role
    rank: dict[str, int]
    outside: bool = False
    reason: str


class Finding(Struct, frozen=True, kw_only=True):
    """One hypothesis after weighing."""

    id: str
    name: str
    verdict: Verdict
    grade: Grade
    for_: tuple[str, ...]
    against: tuple[str, ...]
    missing: tuple[str, ...]


class WaitEnd(Struct, frozen=True, kw_only=True):
    """One end of a wait: a thread of a process."""

    pid: int
    tid: int | None


class Wait(Struct, frozen=True, kw_only=True):
    """Who waits for whom, through what."""

    from_: WaitEnd
    to: WaitEnd
    through: str
    detail: str


class NextStep(Struct, frozen=True, kw_only=True):
    """What to do now; playbook: its file name without the ending."""

    playbook: str
    action: str


class Output(Struct, frozen=True, kw_only=True):
    """The flush state of one output descriptor."""

    pid: int
    fd: int
    path: str | None
    kind: FdKind
    state: OutputState
    hidden_bytes: int | None
    hidden_tail: str | None
    silent_s: float | None


class GpuUse(Struct, frozen=True, kw_only=True):
    """One process's memory on one GPU."""

    pid: int
    used_bytes: int | None


class GpuState(Struct, frozen=True, kw_only=True):
    """One GPU."""

    index: int
    name: str
    used_bytes: int | None
    util_ratio: float | None
    power_w: float | None
    processes: tuple[GpuUse, ...] | None


class MissingReading(Struct, frozen=True, kw_only=True):
    """A reading that was not to be had."""

    probe: str
    pid: int | None
    reason: Reason
    detail: str
    remedy: str


class ProcessState(Struct, frozen=True, kw_only=True):
    """One member at the end of the observation. pid, start_ticks: null of one that a log names by its rank only."""

    pid: int | None
    start_ticks: int | None
    role: Role
    rank: dict[str, int]
    state: str | None
    phase: Phase
    cpu_ratio: float | None
    demand_ratio: float | None


class StackClass(Struct, frozen=True, kw_only=True):
    """Ranks whose main threads stand in one place.

    pids, ranks: of its members, in one order; motion: over the dumps; frames: innermost first, at most eight;
    odd: they stand elsewhere than the others wait.
    """

    pids: tuple[int, ...]
    ranks: tuple[dict[str, int], ...]
    motion: StackMotion
    frames: tuple[str, ...]
    odd: bool


class LogStep(Struct, frozen=True, kw_only=True):
    """A step of the start that the log has.

    at: of the first rank that said it, on the log's own clock; took_s: until the next step; ranks: how many said it;
    last_rank, spread_s: who said it last, and how long after the first one.
    """

    name: str
    text: str
    at: str
    ranks: int
    took_s: float | None
    last_rank: dict[str, int]
    spread_s: float | None


class LogReport(Struct, frozen=True, kw_only=True):
    """What the launch's log says by itself.

    next: the first step that is missing of those that every good start says, next_text: its wording; absent: ranks
    that have not said the last step, which others have; silent_s: since its last line, null where nothing tells until
    when; changed_s: since the file was last changed, which for a copy is its copying; bar: the progress bar that it
    ends with, left_s: the time that this bar still takes at its pace; failures, complaints: in their order;
    baseline: how it differs from good starts.
    """

    path: str
    lines: int
    size_bytes: int
    last_at: str
    steps: tuple[LogStep, ...]
    next: str | None
    next_text: str | None
    absent: tuple[dict[str, int], ...]
    silent_s: float | None
    changed_s: float | None
    bar: str | None
    left_s: float | None
    failures: tuple[str, ...]
    complaints: tuple[str, ...]
    baseline: tuple[str, ...]


class LimitState(Struct, frozen=True, kw_only=True):
    """A timer that ends the launch if it goes on standing still.

    seconds: as it is set; left_s: until it may come, 0 when it is due, null when the time without progress was not
    read; latest_s: until it comes for certain; ends: what it does.
    """

    name: LimitName
    seconds: float
    left_s: float | None
    latest_s: float | None
    ends: str


class Diagnosis(Struct, frozen=True, kw_only=True):
    """The whole answer; report.document turns it into the JSON of the contract.

    no_progress_s: for how long nothing got on, by the oldest proof; null when that was not read. limits: the timers
    that run in this phase, the next one first.
    """

    taken_wall_ns: int
    target: Target
    verdict: Verdict
    grade: Grade
    phase: Phase
    headline: str
    culprits: tuple[Culprit, ...]
    hypotheses: tuple[Finding, ...]
    waits: tuple[Wait, ...]
    next_steps: tuple[NextStep, ...]
    outputs: tuple[Output, ...]
    gpus: tuple[GpuState, ...] | None
    missing: tuple[MissingReading, ...]
    window_s: float
    processes: tuple[ProcessState, ...]
    stack_classes: tuple[StackClass, ...] = ()
    log: LogReport | None = None
    no_progress_s: float | None = None
    limits: tuple[LimitState, ...] = ()
