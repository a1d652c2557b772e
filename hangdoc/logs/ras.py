"""What NCCL's RAS service answers as JSON: how many operations each rank of a communicator has launched."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hangdoc.errors import HangdocError
from hangdoc.logs.stamps import normal
from hangdoc.model.log import LogEvent

_TALK = re.compile(rb"\s*(?:(?:<< |=== )[^\n]*\n|SERVER PROTOCOL \d+\s*\n|OK\s*\n)*")
"""What stands before the answer where the whole conversation was kept."""

_NO_COMMA = re.compile(r'([}\]"\w])(\s*\n\s*)(["{\[])')
"""Where NCCL 2.28.9 leaves out a comma, at a line's end."""

MOST_RANKS = 4096
"""Ranks that are kept. Arbitrary."""


def without_talk(data: bytes) -> bytes:
    r"""Return an answer without the protocol's lines before it.

    >>> without_talk(b'SERVER PROTOCOL 2\nOK\n{"nccl_version"')
    b'{"nccl_version"'
    """
    match = _TALK.match(data)
    return data[match.end() :] if match is not None else data


def parse(data: bytes) -> tuple[LogEvent, ...]:
    """Return the counts of the communicator whose ranks differ most, and the ranks that do not answer.

    They are the records that the lines of RAS's text become. HangdocError for what is no answer.
    """
    text = without_talk(data).decode("utf-8", "replace")
    try:
        found = _loaded(text)
        stamp = normal(found.get("timestamp", ""))
        every = [_counts(one) for one in found["communicators"]]
        absent = [one for communicator in found["communicators"] for one in communicator.get("missing_ranks") or ()]
        widest = max((rows for rows in every if rows), key=_spread, default=[])
        return (*_told(widest[:MOST_RANKS], stamp), *_missing(absent[:MOST_RANKS], stamp))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise HangdocError("no answer of NCCL's RAS", "give it as ncclras -f json printed it") from error


def _loaded(text: str) -> Any:
    decoder = json.JSONDecoder()
    try:
        return decoder.raw_decode(text)[0]  # the answer to another question may follow
    except ValueError:
        return decoder.raw_decode(_NO_COMMA.sub(r"\1,\2\3", text))[0]


def _counts(communicator: Mapping[str, Any]) -> list[tuple[int, int, int]]:
    """Return (rank, operations, pid) of the operation of which the ranks launched most unequal numbers."""
    ranks = communicator["ranks"]
    kinds = sorted({kind for rank in ranks for kind in rank.get("collective_counts") or ()})
    rows = [
        [(int(rank["rank"]), int(rank["collective_counts"][kind]), int(rank.get("pid", 0))) for rank in ranks]
        for kind in kinds
    ]
    return max(rows, key=_spread, default=[])


def _spread(rows: Sequence[tuple[int, int, int]]) -> tuple[int, int]:
    """Return how far apart ranks are; of equal ones the operation that was launched most says most."""
    numbers = [count for _, count, _ in rows]
    return max(numbers) - min(numbers), max(numbers)


def _told(rows: Sequence[tuple[int, int, int]], stamp: str) -> Iterator[LogEvent]:
    for rank, count, pid in rows:
        yield _event(
            "ras-count",
            f"NCCL counts: rank {rank} has launched up to operation {count}",
            {"rank": float(rank), "operation": float(count), "pid": float(pid)},
            stamp,
        )


def _missing(absent: Sequence[Mapping[str, Any]], stamp: str) -> Iterator[LogEvent]:
    for one in absent:
        rank = int(one["rank"])
        numbers = {"rank": float(rank), "pid": float(one.get("pid", 0))}
        yield _event("ras-missing", f"NCCL counts: rank {rank} is missing", numbers, stamp)


def _event(name: str, text: str, numbers: dict[str, float], stamp: str) -> LogEvent:
    return LogEvent(
        kind="watchdog", name=name, phase="unknown", rank={}, offset=0, text=text, stamp=stamp, numbers=numbers
    )
