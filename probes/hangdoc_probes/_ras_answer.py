"""From an answer of NCCL's RAS, JSON or text, to the counts of the communicator in which ranks differ most."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hangdoc import discovery
from hangdoc.errors import HangdocError
from hangdoc.logs import ras
from hangdoc.logs.lines import events
from hangdoc.model.log import LogEvent
from hangdoc.model.ras import RasRank

TEXT_BEGINS = b"NCCL version "
"""How every answer as text begins."""

BLOCK = b"Communicator ranks have different "
"""What opens the list of counts of one operation of one communicator."""

MOST_TEXT_BYTES = 256 << 10
"""Of a text that is read: its lines name outliers only. Arbitrary."""


@dataclass(frozen=True)
class Counts:
    """The ranks that an answer tells of; see model.ras.Ras for the fields."""

    ranks: tuple[RasRank, ...]
    leading: int | None
    unreached: tuple[RasRank, ...]


def counts_of(body: bytes) -> Counts | None:
    r"""Return the counts of an answer; None for what is none.

    >>> line = b"  Rank 1 has launched up to operation 7 -- GPU 0 managed by process 44 on node 192.0.2.1\n"
    >>> counts_of(b"NCCL version 2.30.7\n" + BLOCK + b"AllReduce\n" + line).ranks
    (RasRank(rank=1, operations=7, pid=44, process=None),)
    """
    text = ras.without_talk(body).lstrip()
    try:
        return _counts(ras.parse(text))
    except HangdocError:
        return _of_text(text[:MOST_TEXT_BYTES]) if text.startswith(TEXT_BEGINS) else None


def _of_text(text: bytes) -> Counts:
    """Return the counts of the block whose ranks differ most; equal ones are not in a text."""
    table = discovery.engine("torchrun")  # RAS says the same whatever runs on NCCL
    head, *blocks = text.split(BLOCK)
    found = [_counts(events(block + b"\n", table)) for block in blocks] or [Counts((), None, ())]
    widest = max(found, key=_spread)
    unreached = _counts(events(head + b"\n", table)).unreached
    return Counts(widest.ranks, widest.leading, unreached or widest.unreached)


def _spread(counts: Counts) -> int:
    told = [one.operations for one in counts.ranks if one.operations is not None]
    return (counts.leading or 0) - min(told, default=counts.leading or 0)


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
