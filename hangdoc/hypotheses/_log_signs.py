"""Signs that a log alone gives: failures and their victims, watchdogs, silence, and what went on after them."""

from __future__ import annotations

from functools import lru_cache

from msgspec.structs import replace

from hangdoc.criteria import Absent, Case, Outcome, Present, Unread
from hangdoc.features.clock import seconds_between
from hangdoc.features.features import Features, Member
from hangdoc.features.outputs import HARD_WATCHDOG, LogState
from hangdoc.features.startup import Rank
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.log import REVIEWS, LogEvent
from hangdoc.model.reading import Known, Missing

LOST_BY_RAS = frozenset({"ras-dead", "ras-error"})
"""What NCCL's RAS says of a rank with which no collective can finish: out of reach for 60 s, or an error in NCCL."""

WATCHDOGS = LOST_BY_RAS | {
    HARD_WATCHDOG,
    "watchdog-soft",
    "nccl-watchdog",
    "gloo-timeout",
    "store-timeout",
    "rpc-timeout",
    "nccl-heartbeat",
    "no-heartbeat",
    "engine-iteration",
}
"""Complaints of somebody who measured that nothing moved: 300 s without a batch, 600 s to 30 min for a peer, 40 s (to
vLLM 0.8) or 300 s for a step of the workers, 10 s for a beat of vLLM 0's engine and 60 s for its iteration, 480 s for
NCCL's watchdog itself."""


def log_is_all(case: Case) -> Outcome:
    """A log is all there is: where the processes were looked at, their readings say more."""
    if case.features.is_log:
        return Present("a log is all there is")
    return Absent("the processes themselves were looked at")


def failures(features: Features) -> tuple[LogEvent, ...]:
    """Return the lines that say that something failed, in their order; those that ended nothing, too."""
    if isinstance(features.log, Missing):
        return ()
    crashes = [event for event in features.log.value.crashes if event.kind == "crash"]
    found = sorted((*crashes, *features.log.value.errors), key=lambda event: event.offset)
    ends = [event.offset for event in found if event.name in _ENDS_ITSELF]
    return tuple(replace(one, victim=True) if _is_own_end(one, ends) else one for one in found)


_ENDS_ITSELF = frozenset({"child-failed", "sigquit"})
"""After these SGLang ends its whole tree, itself included, with signal 9: its shell then prints "Killed"."""


def _is_own_end(event: LogEvent, ends: list[int]) -> bool:
    return event.name == "killed" and any(at < event.offset for at in ends)


@lru_cache(maxsize=2)
def lasting(features: Features) -> tuple[LogEvent, ...]:
    """Return the failures after which the launch did not go on."""
    return tuple(event for event in failures(features) if goes_on_after(features, event) is None)


def own_failures(features: Features) -> tuple[LogEvent, ...]:
    """Return the failures of those that failed by themselves, not of those who waited for them."""
    return tuple(event for event in lasting(features) if not event.victim)


def first_cause(features: Features) -> LogEvent | None:
    """Return the failure that the others follow from.

    Rule: what torchrun saw first, unless that rank only suffered and another one had a cause of its own; then the first
    failure that has a cause of its own, or a process that a signal ended; then the first process that somebody saw to
    end; then the first who suffered. Fails where the culprit prints nothing and somebody else's error is of its own.
    """
    found = lasting(features)
    own = [event for event in found if not event.victim]
    causes = [event for event in own if event.name not in _NOTICES or event.numbers.get("code", 0) in _HARD_CODES]
    named = [event for event in own if event.name == "root-cause"]
    if named and not _only_suffered(named[-1], found, causes):
        said = [event for event in causes if _number(event) == named[-1].numbers["rank"]]
        return replace(said[0], text=f"{said[0].text}; torchrun names it first") if said else named[-1]
    return _with_its_reason(_with_its_rank(next(iter((*causes, *own, *found)), None), found), found)


def _with_its_rank(event: LogEvent | None, found: tuple[LogEvent, ...]) -> LogEvent | None:
    """Return an exit code together with the line before it that says of which rank it is: SGLang prints them apart."""
    at = found.index(event) if event is not None else 0
    if event is None or event.name != "exit-code" or "rank" in event.numbers or at == 0:
        return event
    said = found[at - 1]
    if said.name != "scheduler-dead" or "code" in said.numbers or event.offset - said.offset > APART_BYTES:
        return event
    return replace(said, text=f"{said.text}: {event.text}", numbers={**event.numbers, **said.numbers})


APART_BYTES = 300
"""From the line that says which rank died to its exit code. Arbitrary: the next line, with what wraps it."""


def _with_its_reason(event: LogEvent | None, found: tuple[LogEvent, ...]) -> LogEvent | None:
    """Return a failure together with the reason that is printed some lines below it: NCCL's "Last error:", say."""
    reason_name = _REASONS.get("" if event is None else event.name)
    if event is None or reason_name is None:
        return event
    near = (one for one in found if one.name == reason_name and 0 < one.offset - event.offset < REASON_BYTES)
    reason = next(near, None)
    return event if reason is None else replace(event, name=reason.name, text=f"{event.text}: {reason.text}")


_REASONS = {"nccl-error": "shared-memory", "warmup-failed": "warmup-refused"}

REASON_BYTES = 8 << 10
"""From the head of a traceback to the reason at its end. Arbitrary: 50 frames."""


def rank_words(rank: Rank) -> str:
    """Return a rank as the report writes it: NODE1 TP9."""
    return " ".join(f"{axis.upper()}{number}" for axis, number in rank)


def place(event: LogEvent) -> str:
    """Return where a line stands, for the end of a sentence; nothing where that was not counted."""
    return f" (line {event.line})" if event.line else ""


def _only_suffered(named: LogEvent, found: tuple[LogEvent, ...], causes: list[LogEvent]) -> bool:
    """Tell whether all that a rank said is that others were gone, while another rank had a cause of its own."""
    number = int(named.numbers.get("rank", -1))
    said = [event for event in found if event is not named and _number(event) == number]
    others = [event for event in causes if event is not named and _number(event) not in (number, None)]
    return bool(said) and all(event.victim for event in said) and bool(others)


def _number(event: LogEvent) -> int | None:
    """Return the bare number of the rank that printed a line, as torchrun counts; None where it is not told."""
    return next(iter(event.rank.values())) if len(event.rank) == 1 else None


_NOTICES = frozenset(
    {
        "scheduler-dead",
        "engine-core",
        "subprocess-crashed",
        "child-ended",
        "child-exited",
        "worker-exit",
        "exit-code",
        "worker-died",
        "root-cause",
    }
    | {"killed", "ended-by-signal", "ended-in-batch", "mpi-exit", "ray-death", "core-died"}
)
"""Lines in which somebody says of another process that it ended: it may have ended because of a third one."""

_HARD_CODES = frozenset({-4, -6, -7, -8, -9, -11, 132, 134, 135, 136, 137, 139})
"""Exit codes of a process that a signal ended from outside: no exception of a peer does that."""


def ended_hard(event: LogEvent) -> bool:
    """Tell whether somebody saw that a signal ended a process."""
    return event.name in _NOTICES and event.numbers.get("code", 0) in _HARD_CODES


def watchdogs(features: Features) -> tuple[LogEvent, ...]:
    """Return the lines of watchdogs that measured a standstill."""
    if isinstance(features.log, Missing):
        return ()
    return tuple(event for event in features.log.value.complaints if event.name in WATCHDOGS)


def behind(features: Features) -> tuple[tuple[LogEvent, ...], float]:
    """Return the ranks that have launched the fewest collectives, by counts of NCCL or torch, and how far others are.

    Nobody where all are equal, or where those who are behind are not named.
    """
    if isinstance(features.log, Missing):
        return (), 0.0
    said = features.log.value.complaints
    for names, count in ((("ras-count", "ras-few"), "operation"), (("last-enqueued",), "enqueued")):
        counted = [event for event in said if event.name in names and count in event.numbers]
        numbers = [event.numbers[count] for event in counted]
        if counted and min(numbers) < max(numbers):
            least = [event for event in counted if event.numbers[count] == min(numbers)]
            return tuple(event for event in least if event.name != "ras-few"), max(numbers)
    return (), 0.0


def first_is_older(first: tuple[LogEvent, ...], second: tuple[LogEvent, ...]) -> bool:
    """Tell whether the first lines of a kind came before those of another; not so where there is none."""
    return bool(first) and (not second or first[0].offset < second[0].offset)


def goes_on_after(features: Features, event: LogEvent) -> LogEvent | None:
    """Return a line that proves that an event was survived; None when there is none.

    Rule: a batch, or that the server is ready, more than 5 s later (or a second such line, where no line has a time);
    any step of the rank that it happened to; of an event without a rank a later step of every rank. An error that
    a server may survive is also survived when a request is answered after it, well or not. Why: the others go on until
    they next wait for the rank that failed, and lines of other processes come a little late. Another data-parallel
    group goes on all the same, so that its batches prove nothing, and an answer may be of any group. A process in front
    of the schedulers (the detokenizer) is proved by an answer alone: batches go on without it. Fails where a second
    server writes to the same file.
    """
    if isinstance(features.log, Missing):
        return None
    later = [one for one in _work(features.log.value) if one.offset > event.offset and _near(event, one)]
    served = [one for one in later if one.kind == "batch" or one.phase == "ready"]
    served = [one for one in served if one.name not in _NO_WORK]
    if event.kind != "error" and event.name not in _SURVIVED_BY_ANSWERS:
        served = [one for one in served if one.name != "request-failed"]
    settled = [one for one in served if _settled(event, one)]
    if settled:
        return settled[-1]
    if len(served) > 1 and not event.stamp:
        return served[-1]
    answered = [one for one in later if one.name == "request-failed"]
    if answered and (event.kind == "error" or event.name in _SURVIVED_BY_ANSWERS):
        return answered[-1]
    return _everybody_stepped(event, [one for one in later if one.kind == "milestone"], features)


def went_on(features: Features, event: LogEvent | None) -> Outcome:
    """Tell whether an event was survived; None: there was none."""
    later = None if event is None else goes_on_after(features, event)
    return Absent("nothing came after it") if later is None else Present(f"after that its log went on: {later.text}")


def _work(log: LogState) -> list[LogEvent]:
    """Return the lines that prove that somebody went on."""
    every = (*log.milestones, *log.endless)
    return [one for one in every if one.phase != "shutdown" and one.kind != "progress" and one.name not in _AFTER_ALL]


def _near(event: LogEvent, later: LogEvent) -> bool:
    """Tell whether a line may speak for the process of an event: data-parallel groups do not wait for each other."""
    if event.kind == "crash" and later.kind == "batch":
        if event.text.startswith(_IN_FRONT):
            return later.name == "generate-done"
        if "dp" in event.rank and "dp" not in later.rank:
            return False
    axes = event.rank.keys() & later.rank.keys() & {"dp", "server"}
    return all(event.rank[axis] == later.rank[axis] for axis in axes)


_IN_FRONT = ("DetokenizerManager ", "TokenizerManager ", "MultiTokenizerRouter ")
"""How the failures of processes begin through which every answer goes, and no batch."""


def _settled(event: LogEvent, later: LogEvent) -> bool:
    gap = seconds_between(event.stamp, later.stamp)
    return isinstance(gap, Known) and gap.value > (LOOKS_BACK_S if later.name in REVIEWS else SETTLED_S)


def _everybody_stepped(event: LogEvent, later: list[LogEvent], features: Features) -> LogEvent | None:
    """Return a step that the rank of an event, or every rank that prints some, made after it."""
    steps = [one for one in later if one.phase != "unknown"]
    if event.rank:
        return next((one for one in reversed(steps) if one.rank == event.rank), None)
    ranks = _stepping(features)
    if event.kind == "crash" and event.name not in _SURVIVED_BY_ANSWERS:
        if ranks:
            return None  # of a process that is not named the steps of the others tell nothing
        steps = [one for one in steps if _settled(event, one) or not event.stamp]
    went = {tuple(sorted(one.rank.items())) for one in steps if one.rank}
    return steps[-1] if steps and went >= ranks else None


@lru_cache(maxsize=2)
def _stepping(features: Features) -> frozenset[Rank]:
    """Return every rank that prints steps."""
    milestones = () if isinstance(features.log, Missing) else features.log.value.milestones
    return frozenset(tuple(sorted(one.rank.items())) for one in milestones if one.rank)


SETTLED_S = 5.0
"""Seconds after a failure in which lines of those who are not hit by it yet still come. Arbitrary: two batches."""

_NO_WORK = frozenset({"throughput-idle", "throughput-none"})
"""Looks back of vLLM's in whose time not one token came."""

LOOKS_BACK_S = 20.0
"""Seconds after a failure from which on what was done before does not explain a throughput any more: vLLM prints one
each 10 s (VLLM_LOG_STATS_INTERVAL), of the time since the one before. Arbitrary: twice that."""

_SURVIVED_BY_ANSWERS = frozenset({"out-of-memory"})
"""Failures that servers catch: a request of theirs is refused, and the next one is answered."""

_AFTER_ALL = frozenset(
    {"nccl-channels", "nccl-begins", "gloo-connected", "custom-all-reduce", "group-on-several-nodes", "connecting"}
)
"""Lines that NCCL and helpers print while everything ends."""


def in_order(case: Case) -> Outcome:
    """The log says that the server was told to end before anything failed."""
    if isinstance(case.features.log, Missing):
        return Unread.of(case.features.log, "whether it was told to end")
    milestones = case.features.log.value.milestones
    told = tuple(event for event in milestones if event.phase == "shutdown" or event.name == "cancelled")
    if first_is_older(told, lasting(case.features)):
        return Present("the server was told to end before that")
    return Absent("nobody told the server to end")


def member_of(features: Features, event: LogEvent) -> Member | None:
    """Return the member that a line speaks of: by the pid or the rank it names, else by who printed it."""
    numbers = event.numbers
    members = features.members.values()
    by_pid = [one for one in members if one.key.pid == numbers.get("pid", 0)]
    if by_pid:
        return by_pid[0]
    if "rank" in numbers:
        found = [one for one in members if _bare_rank(one) == int(numbers["rank"])]
        return found[0] if len(found) == 1 else None  # with several groups a bare number names nobody
    if event.rank and not event.victim:
        return next((one for one in members if one.process.rank == event.rank), None)
    return None


def _bare_rank(member: Member) -> int | None:
    """Return what a line means that speaks of "rank 3": the tensor-parallel one, else the only axis."""
    rank = member.process.rank
    return rank.get("tp", next(iter(rank.values())) if len(rank) == 1 else None)


def culprit_of(features: Features, event: LogEvent) -> tuple[Culprit, ...]:
    """Return whom a line blames, when it names somebody."""
    member = member_of(features, event)
    if member is not None:
        return (signs.culprit(member, f"the log says of it: {event.text}"),)
    pid = int(event.numbers["pid"]) if event.numbers.get("pid", 0) > 0 else None
    if "rank" not in event.numbers and (pid is None or event.name == "host-out-of-memory"):
        return ()  # the kernel's pids are those of the host
    return (
        Culprit(
            pid=pid,
            start_ticks=None,
            tid=None,
            role="other",
            rank={"rank": int(event.numbers["rank"])} if "rank" in event.numbers else {},
            reason=f"the log says of it: {event.text}",
        ),
    )


def still_lives(case: Case) -> Outcome:
    """Whether its processes still live is not known from a log."""
    del case
    return Unread("whether its processes still live")
