"""From an answer of NCCL's RAS, JSON or text, to the counts of the communicator in which ranks differ most."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hangdoc.errors import HangdocError
from hangdoc.logs import ras
from hangdoc.model.log import LogEvent
from hangdoc.model.ras import RasRank


@dataclass(frozen=True)
class Counts:
    """The ranks that an answer tells of; see model.ras.Ras for the fields."""

    ranks: tuple[RasRank, ...]
    leading: int | None
    unreached: tuple[RasRank, ...]


def counts_of(body: bytes) -> Counts | None:
    r"""Return the counts of an answer; None for what is none.

    >>> head = b"NCCL version 2.30.7 compiled with CUDA 12.9\n"
    >>> counts_of(head + b"  Rank 1 has launched up to operation 7 -- GPU 0 managed by process 44 on node x\n").ranks
    (RasRank(rank=1, operations=7, pid=44, process=None),)
    """
    try:
        return _counts(ras.parse(body))
    except HangdocError:
        return None


def _counts(said: Iterable[LogEvent]) -> Counts:
    ranks: list[RasRank] = []
    unreached: list[RasRank] = []
    leading: list[int] = []
    for event in said:
        rank, pid = int(event.numbers.get("rank", -1)), int(event.numbers.get("pid", 0))
        if event.name in ("ras-missing", "ras-dead"):
            unreached.append(RasRank(rank, None, pid))
        elif event.name in ("ras-count", "ras-few"):
            leading.append(int(event.numbers["operation"]))
            if event.name == "ras-count":
                ranks.append(RasRank(rank, leading[-1], pid))
    return Counts(tuple(ranks), max(leading, default=None), tuple(unreached))
