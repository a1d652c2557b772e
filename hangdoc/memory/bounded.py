"""Bounds what is read of an address space in one take: whatever a target's memory holds, reading it ends."""

from __future__ import annotations

from collections.abc import Sequence

from hangdoc.errors import HangdocError
from hangdoc.memory.image import Image


class SpentError(HangdocError):
    """More was read than such structures take. No UnreadableError: whoever gets over one of those must not go on."""


class Bounded:
    """An address space of which only so many bytes, in so many pieces, are read."""

    def __init__(self, image: Image, most_bytes: int, most_reads: int) -> None:
        self._image = image
        self._bytes_left, self._reads_left = most_bytes, most_reads

    def read(self, address: int, size: int) -> bytes:
        """Return exactly so many bytes, or raise UnreadableError."""
        self._spend(size, 1)
        return self._image.read(address, size)

    def read_many(self, ranges: Sequence[tuple[int, int]]) -> list[bytes | None]:
        """Read ranges at once; None for each that cannot be read."""
        self._spend(sum([size for _, size in ranges]), len(ranges))
        return self._image.read_many(ranges)

    def _spend(self, size: int, reads: int) -> None:
        self._bytes_left -= max(size, 0)
        self._reads_left -= reads
        if self._bytes_left < 0 or self._reads_left < 0:
            raise SpentError("more memory than such structures take", "")
