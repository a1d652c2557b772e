"""What can be read of an address space, and the one error of reading it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Protocol

from hangdoc.errors import HangdocError

MOST_BYTES = 1 << 20
"""The most that one read may ask for: a length taken from the target may be any number; arbitrary."""
PAGE_BYTES = 4096
"""The least that is mapped; pages of other sizes are multiples of it."""


class UnreadableError(HangdocError):
    """An address is not mapped, or what lies there is not what it should be: at another moment it may be."""


class UnknownLayoutError(UnreadableError):
    """What lies there is of a version or a build that is not known: it will not be at another moment either."""


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


def i64(image: Image, address: int) -> int:
    """Read a signed number of eight bytes."""
    return int.from_bytes(image.read(address, 8), "little", signed=True)


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
    """Read a C string of so many bytes at most; it need not be followed by readable bytes, only its page is."""
    data = b""
    while len(data) < most and b"\0" not in data:
        place = address + len(data)
        data += image.read(place, min(most - len(data), PAGE_BYTES - place % PAGE_BYTES))
    return data.split(b"\0", 1)[0].decode("utf-8", "replace")
