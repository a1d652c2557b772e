"""How a process ended."""

from __future__ import annotations

from msgspec import Struct

CORE_DUMPED = 0x80


class Ended(Struct, frozen=True, tag="ended"):
    """The exits probe's reading of a process that has ended. status: as wait(2) gives it."""

    status: int

    @property
    def code(self) -> int | None:
        """Its exit code; None when a signal ended it."""
        return self.status >> 8 & 0xFF if self.signal is None else None

    @property
    def signal(self) -> int | None:
        """The signal that ended it, if one did.

        >>> Ended(7 << 8).code, Ended(0x80 | 11).signal, Ended(9).code
        (7, 11, None)
        """
        return self.status & ~CORE_DUMPED & 0x7F or None
