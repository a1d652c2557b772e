"""Which batch each rank held when its watchdog fired, as SGLang prints it, and which ranks hold another one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hangdoc.features.outputs import LogState
from hangdoc.features.startup import Rank, rank_of
from hangdoc.model.log import LogEvent

TOGETHER = frozenset({"tp", "ep"})
"""Axes along which ranks run one batch together. Data-parallel groups and the stages of a pipeline have their own."""


@dataclass(frozen=True)
class Held:
    """The newest batch that a watchdog printed for a rank. first: a checksum of its first request's id, None: unread.

    event: the line with the count.
    """

    rank: Rank
    requests: int
    first: int | None
    event: LogEvent

    @property
    def group(self) -> Rank:
        """The ranks that run one batch together, by the numbers that they share."""
        return tuple(part for part in self.rank if part[0] not in TOGETHER)

    @property
    def content(self) -> tuple[int, int | None]:
        """What tells its batch from another one."""
        return self.requests, self.first


def of_log(log: LogState) -> tuple[Held, ...]:
    """Return what each rank held by its newest dump, by rank."""
    found: dict[Rank, Held] = {}
    for event in log.complaints:
        rank = rank_of(event)
        first = None if "request" not in event.numbers else int(event.numbers["request"])
        if event.name == "held-batch" and "batch" in event.numbers:
            found[rank] = Held(rank, int(event.numbers["batch"]), first, event)
        elif event.name == "held-request" and (before := found.get(rank)) is not None and before.first is None:
            found[rank] = Held(rank, before.requests, first, before.event)
    return tuple(found[rank] for rank in sorted(found))


def widest_group(held: Iterable[Held]) -> tuple[tuple[Held, ...], ...]:
    """Return the ranks of one group by what they hold, the most frequent first; of the group that differs most.

    Rule: only ranks of one group are compared. A first request that was not read is equal to any.
    """
    groups: dict[Rank, list[Held]] = {}
    for one in held:
        groups.setdefault(one.group, []).append(one)
    return max((_classes(group) for group in groups.values()), key=lambda one: (len(one), _count(one)), default=())


def _classes(group: Sequence[Held]) -> tuple[tuple[Held, ...], ...]:
    unnamed = any(one.first is None for one in group)
    found: dict[tuple[int, int | None], list[Held]] = {}
    for one in group:
        found.setdefault((one.requests, None) if unnamed else one.content, []).append(one)
    return tuple(sorted((tuple(one) for one in found.values()), key=len, reverse=True))


def _count(classes: tuple[tuple[Held, ...], ...]) -> int:
    return sum(len(one) for one in classes)
