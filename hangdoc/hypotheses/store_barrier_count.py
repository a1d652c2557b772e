"""HD225: the store barrier counts other ranks than the job has: one is missing, or two jobs share a port."""

from __future__ import annotations

from dataclasses import dataclass

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.features import Member
from hangdoc.hypotheses import _ranks as ranks
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.reading import Missing


@dataclass(frozen=True)
class _Count:
    """The barrier by its newest line. came, size: ranks that came and that are expected; waiting: who printed it."""

    came: int
    size: int
    waiting: frozenset[int]


def _count(case: Case) -> _Count | Unread | None:
    """Return the newest count; None when the log has none."""
    log = case.features.log
    if isinstance(log, Missing):
        return Unread.of(log, "how many ranks the store barrier counts")
    lines = [event.numbers for event in log.value.complaints if event.name == "store-barrier"]
    counts = [one for one in lines if one.keys() >= {"printer", "came", "world"}]
    if not counts:
        return None
    newest = counts[-1]
    return _Count(int(newest["came"]), int(newest["world"]), frozenset(int(one["printer"]) for one in counts))


def _count_is_wrong(case: Case) -> Outcome:
    """The newest line of the store barrier counts fewer or more ranks than the job has."""
    count = _count(case)
    if isinstance(count, Unread):
        return count
    if count is None:
        return Absent("its log has no line of a store barrier")
    if count.came == count.size:
        return Absent(f"all {count.size} ranks came to the store barrier")
    if count.came > count.size:
        return Present(f"{count.came} ranks came to a store barrier of {count.size}: two jobs share its port")
    return Present(f"{count.came} of {count.size} ranks came to the store barrier")


def _ranks_wait_there(case: Case) -> Outcome:
    """Every rank here that is read stands in the rendezvous, and none burns CPU or works."""
    for member in case.features.movers:
        if isinstance(member.main, Missing):
            return Unread.of(member.main, f"stack of {signs.name_of(member.process)}")
        if not member.main.value.always_does("rendezvous") and not _may_be_the_missing_one(member, case):
            return Absent(f"{signs.name_of(member.process)} is elsewhere: {signs.where(member.main.value)}")
    return ranks.all_sleep(case.features, (member.key for member in case.features.movers))


def _may_be_the_missing_one(member: Member, case: Case) -> bool:
    return any(one.pid == member.key.pid for one in _culprits(case))


def _will_not_end(case: Case) -> Outcome:
    """More ranks came than there are; or fewer, all on this node, and there is no process here that could be another.

    A rank that is only late looks the same while its process is there, or may be on another node.
    """
    count = _count(case)
    if isinstance(count, Unread):
        return count
    if count is None or count.came > count.size:
        return Present("the count has passed the number that ends the barrier") if count else Unread("the count")
    apart = ranks.one_node(case)
    if not isinstance(apart, Present):
        return Unread(apart.because)
    named = _culprits(case)
    if not named or any(one.pid is not None for one in named):
        return Unread("whether the rank that has not come is only late")
    numbers = ", ".join(str(one.rank["rank"]) for one in named)
    return Present(f"no process here is rank {numbers}, and there is no other node")


def _several_lines_agree(case: Case) -> Outcome:
    """More than one rank printed the count."""
    count = _count(case)
    if isinstance(count, Unread):
        return count
    printed = 0 if count is None else len(count.waiting)
    return Present(f"{printed} ranks print that count") if printed > 1 else Absent("one rank at most prints a count")


def _number_of(member: Member) -> int | None:
    """Return a member's number among all ranks: torchrun tells it, else its tensor rank where that is all there is."""
    rank = member.process.rank
    return rank.get("rank", rank.get("tp") if set(rank) <= {"tp"} else None)


def _culprits(case: Case) -> tuple[Culprit, ...]:
    count = _count(case)
    if isinstance(count, Unread) or count is None or count.came >= count.size:
        return ()
    missing = [number for number in range(count.size) if number not in count.waiting]
    here = {_number_of(member): member for member in case.features.movers}
    reason = "has not come to the store barrier"
    return tuple(
        signs.culprit(here[number], reason)
        if number in here
        else Culprit(
            pid=None, start_ticks=None, tid=None, role="worker", rank={"rank": number}, outside=True, reason=reason
        )
        for number in missing
        if len(missing) == count.size - count.came
    )


def _headline(case: Case) -> str:
    return f"{_count_is_wrong(case).because}."[:1].upper() + f"{_count_is_wrong(case).because}."[1:]


HYPOTHESIS = Hypothesis(
    id="HD225",
    name="store-barrier-count",
    verdict="blocked",
    suspects=signs.the_launch,
    essential=(
        _count_is_wrong,
        _ranks_wait_there,
        signs.positive_or_patience(_will_not_end),
        signs.nothing_progresses,
        signs.readings_are_steady,
    ),
    supporting=(_several_lines_agree, signs.log_is_silent_too_long),
    confirm_at=1,
    excluding=(signs.nobody_died,),
    headline=_headline,
    culprits=_culprits,
    action="Fewer: find the rank that printed no such line. More: end the other job, or take another master port.",
    playbook="store-barrier-count",
)
