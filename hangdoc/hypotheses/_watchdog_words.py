"""What watchdogs print beside the time that ran out: the batch of each rank, and the last collective that ended."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Outcome, Present, Unread
from hangdoc.features.features import Features
from hangdoc.features.held_batches import Held, of_log, widest_group
from hangdoc.features.outputs import LogState
from hangdoc.features.startup import Rank, rank_of
from hangdoc.hypotheses import _log_signs as logs
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.log import LogEvent
from hangdoc.model.reading import Missing


def batches_differ(case: Case) -> Outcome:
    """The watchdogs of ranks that run one batch together printed different ones: a step that is not the same step.

    Compared are the ranks of one data-parallel group and stage, by the number of requests and the first request's id,
    and only where nothing went on between the dumps. Fails where one rank has only begun the step that another ended:
    then it is behind, and still the one to look at.
    """
    log = case.features.log
    if isinstance(log, Missing):
        return Unread.of(log, "which batch each rank holds")
    held = of_log(log.value)
    classes = widest_group(held)
    if not classes:
        return Absent("no watchdog printed the batch of a rank")
    if len(held) == 1:
        return Unread(f"which batch the ranks beside {_name(held[0].rank)} hold: their watchdogs did not print it")
    if (later := _went_on(case.features, held)) is not None:
        return Absent(f"after a watchdog printed the batch of a rank, its log went on: {later.text}")
    if len(classes) == 1:
        alone = len(classes[0]) == 1
        return Absent(
            "the ranks whose watchdogs printed a batch run none together"
            if alone
            else f"the watchdogs of {len(classes[0])} ranks printed the same batch"
        )
    same_count = len({one[0].requests for one in classes}) == 1
    what = "the ranks do not hold the same batch" + (" (they differ in the first request)" if same_count else "")
    return Present(f"{what}: {'; '.join(map(_sentence, classes))}")


def _went_on(features: Features, held: tuple[Held, ...]) -> LogEvent | None:
    oldest = min((one.event for one in held), key=lambda event: event.offset)
    return logs.goes_on_after(features, oldest)


def _sentence(one: tuple[Held, ...]) -> str:
    names = ", ".join(_name(held.rank) for held in one[:MOST_NAMED])
    more = f" and {len(one) - MOST_NAMED} more" if len(one) > MOST_NAMED else ""
    return f"{one[0].requests} requests on {names}{more}"


MOST_NAMED = 8
"""Ranks of one batch that are named. Arbitrary: a node of eight."""


def _name(rank: Rank) -> str:
    return logs.rank_words(rank) or "the rank"


def with_another_batch(case: Case) -> tuple[Culprit, ...]:
    """Return the ranks that hold another batch than most; nobody where no batch is that of most."""
    log = case.features.log
    if isinstance(log, Missing) or not isinstance(batches_differ(case), Present):
        return ()
    most, *others = widest_group(of_log(log.value))
    if any(len(one) == len(most) for one in others):
        return ()
    return tuple(culprit for one in others for held in one for culprit in logs.culprit_of(case.features, held.event))


def first_never_ended(case: Case) -> Outcome:
    """NCCL's watchdog of every rank says that no collective ever ended: even the first one hangs, so no rank is astray.

    The line is "last enqueued NCCL work: 1, last completed NCCL work: -1"; a flight recorder's dump says the same.
    """
    log = case.features.log
    if isinstance(log, Missing):
        return Unread.of(log, "whether a collective ever ended")
    said = {rank: event for event in log.value.complaints if _counts(event) for rank in (_rank(event),)}
    if not said:
        return Absent("no watchdog of NCCL counts the collectives that ended")
    for rank, event in said.items():
        if event.numbers["completed"] >= 0:
            return Absent(f"a collective of {_name(rank)} had ended before: {event.text}")
    if len({event.numbers["enqueued"] for event in said.values()}) > 1:
        return Absent("one rank has launched fewer collectives than another")
    wanted = [member.process.rank for member in case.features.movers if member.process.rank]
    silent = [rank for rank in wanted if not any(dict(one).items() <= rank.items() for one in said)]
    if silent:
        name = _name(tuple(sorted(silent[0].items())))
        return Unread(f"whether a collective of {name} ever ended: its watchdog of NCCL did not say so")
    return Present(f"the watchdogs of NCCL of {len(said)} ranks say that no collective ever ended, not even the first")


def counts_collectives(log: LogState) -> bool:
    """Tell whether any watchdog of NCCL says in a log how many collectives were launched, and how many ended."""
    return any(_counts(event) for event in log.complaints)


def _counts(event: LogEvent) -> bool:
    return event.name == "last-enqueued" and {"enqueued", "completed"} <= event.numbers.keys()


def _rank(event: LogEvent) -> Rank:
    return rank_of(event) or ((("rank", int(event.numbers["rank"])),) if "rank" in event.numbers else ())
