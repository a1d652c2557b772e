"""What a case tells of NCCL's counts, as the reading that the ras probe would have taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hangdoc.model.process import ProcessKey
from hangdoc.model.ras import Ras, RasRank
from tests.cases.words import at

KEYS = frozenset({"outcome", "ranks", "unreached"})


def ras(told: Mapping[str, Any], number: int, members: frozenset[int]) -> Ras:
    """Return the answer of a round; members: pids of the launch, that are known by them."""

    def rank_of(rank: int, pid: int, operations: int | None) -> RasRank:
        return RasRank(rank, operations, pid, ProcessKey(pid, 1) if pid in members else None)

    ranks = tuple(
        rank_of(rank, pid, at(launched, number)) for rank, (pid, launched) in enumerate(told.get("ranks", ()))
    )
    unreached = tuple(rank_of(-1, pid, None) for pid in told.get("unreached", ()))
    leading = max((one.operations for one in ranks if one.operations is not None), default=None)
    return Ras(port=28028, outcome=told.get("outcome", "answered"), ranks=ranks, leading=leading, unreached=unreached)
