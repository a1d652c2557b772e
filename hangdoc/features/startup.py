"""A start as its log tells it: which step was reached when and by whom, which comes next, how fast a bar goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hangdoc.features.clock import seconds_between
from hangdoc.features.outputs import LogState
from hangdoc.features.phases import ORDER
from hangdoc.model.engine import Engine, Step
from hangdoc.model.log import LogEvent, Phase
from hangdoc.model.reading import Known, Reading

Rank = tuple[tuple[str, int], ...]
"""A rank as a key: its axes and numbers, sorted; () for lines without one."""


@dataclass(frozen=True)
class Reached:
    """A step that was reached. by: every rank that said so; first, last: the earliest and the latest line of it."""

    step: Step
    first: LogEvent
    last: LogEvent
    by: frozenset[Rank]


@dataclass(frozen=True)
class Start:
    """The steps of a start that a log has, in their order.

    expected: the steps still to come; ranks: everybody who printed a step that each rank prints; absent: the ranks of
    them that have not said the last such step; behind: of several files those who have not come as far as the others;
    dated: its times have a date; texts: what the newest version prints for
    a step, by the step's name.
    """

    reached: tuple[Reached, ...]
    expected: tuple[Step, ...]
    ranks: frozenset[Rank]
    absent: tuple[Rank, ...]
    behind: tuple[Rank, ...]
    dated: bool
    texts: Mapping[str, str]

    @property
    def last(self) -> Reached | None:
        """The most advanced step."""
        return self.reached[-1] if self.reached else None

    @property
    def next(self) -> Step | None:
        """The first step that is missing of those that every good start of this version says; None without any step."""
        if not self.reached:
            return None
        return next((step for step in self.expected if not step.optional and (self.dated or not step.dated)), None)

    def took(self, step: Reached) -> Reading[float]:
        """Return the seconds from this step to the next one that was reached."""
        later = self.reached[self.reached.index(step) + 1 :]
        begin, end = step.first.stamp, later[0].first.stamp if later else ""
        return seconds_between(begin, end)


def start_of(milestones: Sequence[LogEvent], engine: Engine) -> Start:
    """Return what a log's milestones say of the start, by the engine's own list of steps."""
    found: list[Reached] = []
    for step in engine.steps:
        said = [event for event in milestones if event.name == step.name]
        if said:
            found.append(Reached(step, said[0], said[-1], frozenset(rank_of(event) for event in said)))
    names = [one.step.name for one in found]
    after = next((at for at, step in reversed(list(enumerate(engine.steps))) if step.name in names), -1)
    ranks = frozenset(rank for one in found if one.step.every_rank for rank in one.by)
    dated = not any(0 < len(event.stamp) < len("01-02 03:04:05") for event in milestones)
    texts = {line.name: line.text for line in engine.log_lines}
    absent = _absent(found, ranks)
    behind = _behind(milestones, absent, ranks)
    return Start(tuple(found), engine.steps[after + 1 :], ranks, absent, behind, dated, texts)


def _absent(found: Sequence[Reached], ranks: frozenset[Rank]) -> tuple[Rank, ...]:
    ranked = [one for one in found if one.step.every_rank]
    return tuple(sorted(ranks - ranked[-1].by)) if ranked else ()


FILES = ("node", "server")
"""Axes of a rank that count files: of one launch's nodes, of several servers."""


def _behind(milestones: Sequence[LogEvent], absent: tuple[Rank, ...], ranks: frozenset[Rank]) -> tuple[Rank, ...]:
    """Return the ranks, or whole files, that have not come as far as other files and have not said "ready"."""
    files = {part for event in milestones for part in rank_of(event) if part[0] in FILES}
    if len(files) < 2:
        return ()
    ready = {part for event in milestones if event.name == "ready" for part in rank_of(event)}
    silent = {(file,) for file in files if not any(file in rank for rank in ranks)}
    return tuple(
        sorted(rank for rank in {*absent, *silent} if ready.isdisjoint(part for part in rank if part in files))
    )


def rank_of(event: LogEvent) -> Rank:
    """Return the rank of an event as a key."""
    return tuple(sorted(event.rank.items()))


def log_phase(log: LogState, engine: Engine) -> Phase:
    """Return the phase that a log alone tells: that of the least advanced rank.

    Rule: the newest line that has a phase, whatever its kind; when it is one rank's, the least advanced of the ranks'
    own newest lines. FlashInfer says that it loads kernels whether it compiles them or not: that tells only where no
    other line does. A batch means warm-up before the start said "ready", serving after it until it is answered, or
    where the log has no step of the start at all. Fails on an excerpt whose lines are not in their order.
    """
    behind = start_of(log.milestones, engine).behind
    lines = sorted((*log.milestones, *log.crashes, *log.complaints, *log.endless), key=lambda event: event.offset)
    if behind:
        theirs = [[event for event in lines if _opens(event) and {*rank} <= {*rank_of(event)}] for rank in behind]
        return min((own[-1].phase if own else "launch" for own in theirs), key=ORDER.index)
    every = [event for event in lines if _opens(event) or event.kind == "batch" or event.name == "watchdog"]
    told = [event for event in every if event.name != "flashinfer-build"] or every
    if not told:
        connects = any(log.reached(name) for name in _CONNECTING) or any(e.name in _CONNECTING for e in log.crashes)
        return "rendezvous" if connects else "unknown"
    newest = told[-1]
    if log.reached("ready") and (newest.name in _ANSWERED or newest.numbers.get("running") == 0):
        return "ready"
    if not _opens(newest):
        starts = any(event.kind == "milestone" and event.phase != "unknown" for event in told)
        return "warmup" if starts and not log.reached("ready") else "serving"
    if not newest.rank or newest.phase in {"ready", "shutdown"}:
        return newest.phase
    return _least(told, engine) or newest.phase


def _opens(event: LogEvent) -> bool:
    return event.phase != "unknown"


_ANSWERED = frozenset({"generate-done", "request-failed"})

_CONNECTING = ("gloo-connected", "nccl-begins", "nccl-channels", "nccl-error")
"""Lines of libraries that are written late, and in other phases too: they tell only where nothing else does."""


def _least(told: Sequence[LogEvent], engine: Engine) -> Phase | None:
    """Return the phase of the rank that is least far, of those that print the steps which each rank prints."""
    common = {step.name for step in engine.steps if step.every_rank}
    ranks = {rank_of(event) for event in told if event.name in common and event.rank}
    newest = {rank_of(event): event.phase for event in told if rank_of(event) in ranks and _opens(event)}
    return min(newest.values(), key=ORDER.index) if len(newest) > 1 else None


@dataclass(frozen=True)
class Bar:
    """The progress bar that a log ends with. moved: it made steps while the log was written."""

    text: str
    done: float
    total: float
    elapsed_s: float
    left_s: Reading[float]
    moved: bool

    @property
    def step_s(self) -> float:
        """Seconds a step, on the average so far; 0 before the first one."""
        return self.elapsed_s / self.done if self.done else 0.0


def stands_s(log: LogState, start: Start) -> float | None:
    """Return for how many seconds a start has made no step that its log shows; None where that is not to be told.

    Rule: from the newest step, or the newest move of a bar, of those who have not come as far as the others, else of
    anybody. Lines that say nothing of the start count for nothing, nor does one that says what it said before. Fails
    where a step has lines that no table knows.
    """
    seen: set[tuple[object, ...]] = set()
    newest = None
    for event in sorted((*log.milestones, *log.endless), key=lambda event: event.offset):
        said = (event.name, event.text, rank_of(event), event.numbers.get("done"))
        if event.kind == "batch" or said in seen or not _is_theirs(event, start.behind):
            continue
        seen.add(said)
        newest = event
    if newest is None:
        return None
    if not log.last_stamp:
        return log.silent_s
    between = seconds_between(newest.stamp, log.last_stamp)
    return log.silent_s + between.value if isinstance(between, Known) else None


def _is_theirs(event: LogEvent, behind: tuple[Rank, ...]) -> bool:
    return not behind or any({*rank} <= {*rank_of(event)} for rank in behind)


def bar_at_end(log: LogState) -> Bar | None:
    """Return the bar that is the log's newest line of all that are known; None when another line came after it."""
    lines = sorted((*log.milestones, *log.crashes, *log.complaints, *log.endless), key=lambda event: event.offset)
    bars = [event for event in lines if event.kind == "progress" and event.numbers.get("total", 0) > 0]
    if not bars or lines[-1] is not bars[-1]:
        return None
    last = bars[-1]
    equal = [event for event in bars if event.name == last.name]
    left = last.numbers.get("left_s")
    return Bar(
        text=last.text,
        done=last.numbers["done"],
        total=last.numbers["total"],
        elapsed_s=last.numbers["elapsed_s"],
        left_s=Known(left) if left is not None else seconds_between("", ""),
        moved=len({event.numbers.get("done") for event in equal}) > 1 or last.numbers["done"] >= FEWEST_STEPS,
    )


FEWEST_STEPS = 2
"""Steps after which a bar has shown a pace: the first one includes all warming up. Arbitrary."""
