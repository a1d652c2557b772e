"""What can be read of an address space, and the one error of reading it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Protocol

from hangdoc.errors import HangdocError

MOST_BYTES = 1 << 20
"""The most that one read may ask for: a length taken from the target may be any number; arbitrary."""


class UnreadableError(HangdocError):
    """An address is not mapped, or what lies there is not what it should be."""


class Image(Protocol):
    """An address space: a live process's, or one that a test made up."""

    def read(self, address: int, size: int) -> bytes:
        """Return exactly so many bytes; UnreadableError when not all of them can be read."""

    def read_many(self, ranges: Sequence[tuple[int, int]]) -> list[bytes | None]:
        """Read (address, size) ranges at once; None for each that cannot be read."""


def unreadable(address: int, size: int) -> UnreadableError:
    """Make the error of a range that cannot be read."""
    return UnreadableError(f"{size} bytes at {address:#x} cannot be read", "")


def u64(image: Image, address: int) -> int:
    """Read a pointer, or another number of eight bytes."""
    return int.from_bytes(image.read(address, 8), "little")


def u32(image: Image, address: int) -> int:
    """Read a number of four bytes."""
    return int.from_bytes(image.read(address, 4), "little")


def i32(image: Image, address: int) -> int:
    """Read a signed number of four bytes."""
    return int.from_bytes(image.read(address, 4), "little", signed=True)


def words(data: bytes) -> tuple[int, ...]:
    """Split bytes into numbers of eight bytes each; what is left over at the end is dropped.

    >>> words(bytes([1] + [0] * 7 + [2] + [0] * 7 + [9]))
    (1, 2)
    """
    count = len(data) // 8
    return struct.unpack_from(f"<{count}Q", data)


def c_string(image: Image, address: int, most: int = 64) -> str:
    """Read a C string; it need not be followed by so many readable bytes."""
    data = b""
    while len(data) < most and b"\0" not in data:
        step = min(most - len(data), 16 - (address + len(data)) % 16)
        data += image.read(address + len(data), step)
    return data.split(b"\0", 1)[0].decode("utf-8", "replace")
