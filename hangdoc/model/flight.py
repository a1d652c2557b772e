"""What dumps of torch's flight recorder beside a launch say: the last collective of each rank in one group."""

from __future__ import annotations

from msgspec import Struct

from hangdoc.model.process import ProcessKey


class FlightRank(Struct, frozen=True, array_like=True):
    """One rank, by its dump: numbers of the last collective it enqueued and completed in the group; -1: none.

    process: the member that has this rank, None where that is not known.
    """

    rank: int
    enqueued: int
    completed: int
    process: ProcessKey | None = None


class Flight(Struct, frozen=True, kw_only=True, tag="flight"):
    """The flight probe's reading of the launch: dumps that were written since it started, one a rank.

    ranks: in the group in which they differ most, sorted; unreadable: dumps that are none.
    """

    ranks: tuple[FlightRank, ...]
    unreadable: int = 0
