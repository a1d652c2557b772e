"""Signs that a log alone gives: failures and their victims, watchdogs, silence, and what went on after them."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Outcome, Present, Unread
from hangdoc.features.features import Features, Member
from hangdoc.features.outputs import HARD_WATCHDOG
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.log import LogEvent
from hangdoc.model.reading import Missing

WATCHDOGS = frozenset({HARD_WATCHDOG, "watchdog-soft", "nccl-watchdog"})
"""Complaints of somebody who measured that nothing moved: 300 s without a batch, 600 s in a collective."""


def log_is_all(case: Case) -> Outcome:
    """A log is all there is: where the processes were looked at, their readings say more."""
    if case.features.is_log:
        return Present("a log is all there is")
    return Absent("the processes themselves were looked at")


def failures(features: Features) -> tuple[LogEvent, ...]:
    """Return the lines that say that a process failed, in their order."""
    if isinstance(features.log, Missing):
        return ()
    return tuple(event for event in features.log.value.crashes if event.kind == "crash")


def own_failures(features: Features) -> tuple[LogEvent, ...]:
    """Return the failures of those that failed by themselves, not of those who waited for them."""
    return tuple(event for event in failures(features) if not event.victim)


def watchdogs(features: Features) -> tuple[LogEvent, ...]:
    """Return the lines of watchdogs that measured a standstill."""
    if isinstance(features.log, Missing):
        return ()
    return tuple(event for event in features.log.value.complaints if event.name in WATCHDOGS)


def first_is_older(first: tuple[LogEvent, ...], second: tuple[LogEvent, ...]) -> bool:
    """Tell whether the first lines of a kind came before those of another; not so where there is none."""
    return bool(first) and (not second or first[0].offset < second[0].offset)


def goes_on_after(features: Features, event: LogEvent) -> LogEvent | None:
    """Return a line of work or of the start that came after an event; None when nothing did."""
    if isinstance(features.log, Missing):
        return None
    log = features.log.value
    work = [one for one in (*log.milestones, *log.endless) if one.phase != "shutdown" and one.kind != "progress"]
    later = [one for one in work if one.offset > event.offset and one.name not in _AFTER_ALL]
    return later[-1] if later else None


_AFTER_ALL = frozenset(
    {"nccl-channels", "nccl-begins", "gloo-connected", "custom-all-reduce", "group-on-several-nodes", "connecting"}
)
"""Lines that NCCL and helpers print while everything ends."""


def in_order(case: Case) -> Outcome:
    """The log says that the server was told to end before anything failed."""
    if isinstance(case.features.log, Missing):
        return Unread.of(case.features.log, "whether it was told to end")
    told = tuple(event for event in case.features.log.value.milestones if event.phase == "shutdown")
    if first_is_older(told, failures(case.features)):
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
    if "rank" not in event.numbers:
        return ()
    return (
        Culprit(
            pid=int(event.numbers["pid"]) if event.numbers.get("pid", 0) > 0 else None,
            start_ticks=None,
            tid=None,
            role="other",
            rank={"rank": int(event.numbers["rank"])},
            reason=f"the log says of it: {event.text}",
        ),
    )


def still_lives(case: Case) -> Outcome:
    """Whether its processes still live is not known from a log."""
    del case
    return Unread("whether its processes still live")
