"""Files that are no logs and say something beside them: dumps of flight recorders and answers of NCCL's RAS."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, TypeAlias

from hangdoc.errors import HangdocError
from hangdoc.logs import flight, ras
from hangdoc.logs.rotation import rank_in_name
from hangdoc.logs.sources import Source, stored
from hangdoc.model.log import LogEvent

EvidenceKind: TypeAlias = Literal["flight", "ras"]

_FLIGHT = re.compile(rb'^\{.*"(?:collective_seq_id|pg_status|pg_config)"', re.DOTALL)
_RAS = re.compile(rb'^\{\s*"(?:nccl_version|communicators\w*)".*"(?:communicators|collective_counts)"', re.DOTALL)

_LOOKED_AT_BYTES = 16 << 10
"""What tells these files. Arbitrary: the first entry of a recorder with its stack."""


def evidence_kind(head: bytes) -> EvidenceKind | None:
    """Return what a file is, by its first bytes as they are stored, unpacked; None for anything else.

    >>> evidence_kind(b'{"comm_lib_version":"","entries":[{"collective_seq_id":1'), evidence_kind(b"[2026-11-29")
    ('flight', None)
    """
    if flight.PICKLED.match(head) is not None:
        return "flight"
    start = ras.without_talk(head[:_LOOKED_AT_BYTES]).lstrip()
    if _RAS.match(start) is not None or ras.is_text(head[:_LOOKED_AT_BYTES]):
        return "ras"
    return "flight" if _FLIGHT.match(start) is not None else None


Said: TypeAlias = tuple[LogEvent, ...] | dict[int, tuple[flight.Count, ...]]
"""What one file says: records, or the counts of the rank that it is of."""


def read_evidence(source: Source, kind: str, axis: str) -> Said:
    """Return what a file says; HangdocError for what is not of its kind. axis: what ranks in names count on."""
    try:
        if kind == "ras":
            return ras.parse(_whole(source))
        rank = next(iter(rank_in_name(source, axis).values()), -1)
        return {rank: flight.parse(_whole(source))}
    except HangdocError as error:
        raise HangdocError(f"{source.name} is {error.message}", error.remedy) from error


def records(said: Iterable[Said], axis: str) -> tuple[LogEvent, ...]:
    """Return what all files say, as the records that lines of a log become."""
    counts: dict[int, tuple[flight.Count, ...]] = {}
    events: list[LogEvent] = []
    for number, one in enumerate(said):
        if isinstance(one, tuple):
            events += one
        else:
            counts |= {rank if rank >= 0 else -1 - number: found for rank, found in one.items()}
    return (*events, *flight.events(counts, axis))


def _whole(source: Source) -> bytes:
    data = bytearray()
    for piece in stored(source):
        data += piece
        if len(data) > flight.LARGEST_BYTES:
            raise HangdocError("too large to be read whole", "give the log beside it alone")
    return bytes(data)
