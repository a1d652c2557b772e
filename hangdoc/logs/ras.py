"""What NCCL's RAS service answers, as text or JSON: how far each rank of a communicator is, and who does not answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from hangdoc import discovery
from hangdoc.errors import HangdocError
from hangdoc.logs import ras_text
from hangdoc.logs.lines import pieces, read_line, text_of
from hangdoc.logs.stamps import normal
from hangdoc.model.log import LogEvent

_TALK = re.compile(rb"\s*(?:(?:<< |=== )[^\n]*\n|SERVER PROTOCOL \d+\s*\n|OK\s*\n)*")
"""What stands before the answer where the whole conversation was kept."""

_NO_COMMA = re.compile(r'([}\]"\w])(\s*\n\s*)(["{\[])')
"""Where NCCL 2.28.9 leaves out a comma, at a line's end."""

_TEXT = re.compile(rb"\s*NCCL version \S+ compiled with CUDA \d")

MOST_RANKS = 4096
"""Ranks that are kept. Arbitrary."""

_LEAVING = frozenset({"finalize_called", "destroy_flag", "abort_flag"})
_NO_ERRORS, _REMOTE = frozenset({0, 7}), 6
"""Results of NCCL: success and in progress; the error of a rank that lost a peer."""


def without_talk(data: bytes) -> bytes:
    r"""Return an answer without the protocol's lines before it.

    >>> without_talk(b'SERVER PROTOCOL 2\nOK\n{"nccl_version"')
    b'{"nccl_version"'
    """
    match = _TALK.match(data)
    return data[match.end() :] if match is not None else data


def is_text(head: bytes) -> bool:
    r"""Tell whether an answer begins that is a text.

    >>> is_text(b"OK\nNCCL version 2.28.9+cuda12.9 compiled with CUDA 12.9\nCUDA runtime version"), is_text(b"{")
    (True, False)
    """
    return _TEXT.match(without_talk(head)) is not None


def parse(data: bytes) -> tuple[LogEvent, ...]:
    """Return the counts of the communicator whose ranks differ most, and the ranks that are lost, failed or left.

    Each record is a complaint: "ras-count" (numbers: rank, operation, pid), "ras-few" (ranks that are not named:
    ranks, operation), "ras-missing" (rank, pid; its process does not answer), "ras-dead" (rank, pid; its process was
    out of reach for a minute and a communicator still has it), "ras-gone" (pid; of no communicator that is left),
    "ras-left" (rank, pid; it has destroyed or aborted the communicator), "ras-error" (rank, pid; NCCL failed in it),
    "ras-suffered" (rank, pid; it lost a peer). pid 0: not told. HangdocError for what is no answer.
    """
    if is_text(data):
        return _of_text(without_talk(data))
    text = without_talk(data).decode("utf-8", "replace")
    try:
        found = _loaded(text)
        stamp = normal(found.get("timestamp", ""))
        every = [_counts(one) for one in found["communicators"]]
        odd = [event for communicator in found["communicators"] for event in _odd(communicator)]
        widest = max((rows for rows in every if rows), key=ras_text.spread, default=[])
        return tuple(replace(event, stamp=stamp) for event in (*widest[:MOST_RANKS], *odd[:MOST_RANKS]))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, OverflowError) as error:
        raise HangdocError("no answer of NCCL's RAS", "give it as ncclras printed it, as text or JSON") from error


def _of_text(data: bytes) -> tuple[LogEvent, ...]:
    engine, said = discovery.engine("generic"), ras_text.RasText()
    for start, line in pieces(data + b"\n"):
        if (event := read_line(text_of(line), engine, start)) is not None:
            said.take(event)
    return tuple(sorted(said.told(), key=lambda event: event.offset))


def _loaded(text: str) -> Any:
    decoder = json.JSONDecoder()
    try:
        return decoder.raw_decode(text)[0]  # the answer to another question may follow
    except ValueError:
        return decoder.raw_decode(_NO_COMMA.sub(r"\1,\2\3", text))[0]


def _counts(communicator: Mapping[str, Any]) -> list[LogEvent]:
    """Return the counts of the operation of which the ranks launched most unequal numbers."""
    ranks = communicator["ranks"]
    kinds = sorted({kind for rank in ranks for kind in rank.get("collective_counts") or ()})
    rows = [
        [ras_text.count(int(rank["rank"]), int(rank["collective_counts"][kind]), _pid(rank)) for rank in ranks]
        for kind in kinds
    ]
    return max(rows, key=ras_text.spread, default=[])


def _pid(rank: Mapping[str, Any]) -> int:
    return int(rank.get("pid", 0))


def _odd(communicator: Mapping[str, Any]) -> Iterator[LogEvent]:
    """Yield who of a communicator is not as the others: lost, failed, or gone from it while others are not."""
    ranks = communicator["ranks"]
    has_left = [bool(_LEAVING & {name for name, is_set in _status(rank).items() if is_set is True}) for rank in ranks]
    for rank, is_gone in zip(ranks, has_left, strict=True):
        number, pid, status = int(rank["rank"]), _pid(rank), _status(rank)
        codes = {status.get("init_state", 0), status.get("async_error", 0)} - _NO_ERRORS
        if codes:
            yield ras_text.error(number, pid, victim=codes == {_REMOTE})
        if is_gone and not all(has_left):
            yield ras_text.left(number, pid)
    for rank in communicator.get("missing_ranks") or ():
        number, pid, status = int(rank["rank"]), _pid(rank), _status(rank)
        if status.get("considered_dead") is True:
            yield ras_text.dead(number, pid)
        else:
            yield ras_text.left(number, pid) if status.get("unresponsive") is False else ras_text.missing(number, pid)


def _status(rank: Mapping[str, Any]) -> Mapping[str, Any]:
    return rank.get("status") or {}
