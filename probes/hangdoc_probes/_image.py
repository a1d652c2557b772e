"""A target's memory as numbers and strings, within a budget: whatever it holds, reading it ends."""

from __future__ import annotations

import struct
from collections.abc import Callable

from hangdoc.model.reading import Missing, Reading, Reason

MOST_BYTES = 32 << 20
"""Read of one process in one take; arbitrary: ten times what a large interpreter takes."""

MOST_READS = 30_000
"""Single reads of one process in one take (about 5 us each); arbitrary."""

LONGEST_NAME_BYTES = 128
"""Names of symbols, types and members that are compared; longer ones are cut. Arbitrary."""

PAGE_BYTES = 4096


class UnreadError(Exception):
    """A reading that cannot be had: says why."""

    def __init__(self, missing: Missing) -> None:
        super().__init__(missing.detail)
        self.missing = missing


class Image:
    """Numbers and strings of a memory. Every failure is an UnreadError."""

    def __init__(self, probe: str, read: Callable[[int, int], Reading[bytes]]) -> None:
        self._probe = probe
        self._read = read
        self._bytes_left = MOST_BYTES
        self._reads_left = MOST_READS

    def piece(self, address: int, length: int) -> bytes:
        """Return a piece of the memory; nothing is a piece of no length."""
        if length == 0:
            return b""
        self._bytes_left -= length
        self._reads_left -= 1
        if self._bytes_left < 0 or self._reads_left < 0:
            raise self.refused("failed", "more memory than such a structure takes")
        found = self._read(address, length)
        if isinstance(found, Missing):
            raise UnreadError(found)
        return found.value

    def number(self, address: int) -> int:
        """Return an unsigned number of 8 bytes: a pointer, a size."""
        return self.numbers(address, 1)[0]

    def numbers(self, address: int, count: int) -> tuple[int, ...]:
        """Return unsigned numbers of 8 bytes that lie side by side."""
        return struct.unpack(f"<{count}Q", self.piece(address, 8 * count))

    def name(self, address: int) -> bytes:
        """Return a string up to its zero byte, not beyond the page if the next one cannot be read."""
        try:
            found = self.piece(address, LONGEST_NAME_BYTES)
        except UnreadError:
            found = self.piece(address, min(LONGEST_NAME_BYTES, PAGE_BYTES - address % PAGE_BYTES))
        return found.partition(b"\0")[0]

    def refused(self, reason: Reason, detail: str) -> UnreadError:
        """Make the error of a memory that is not what it should be."""
        return UnreadError(Missing(self._probe, reason, detail))
