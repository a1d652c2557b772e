"""Text that the C library of a process holds back: every output stream of glibc, read from its memory."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from hangdoc.memory.image import Image, UnknownLayoutError, UnreadableError, u64

LIST = "_IO_list_all"
"""Head of the list of all FILEs: exported by every glibc, a `struct _IO_FILE *`."""

MOST_STREAMS = 256
"""FILEs of one process. Arbitrary; the list of a memory that lies may have no end."""

MOST_PENDING_BYTES = 1 << 20
"""A larger buffer than anybody sets with setvbuf. Arbitrary."""

MAGIC, MAGIC_MASK = 0xFBAD0000, 0xFFFF0000
FILE_BYTES = 216


@dataclass(frozen=True)
class CStream:
    """One FILE. used: it was given a buffer, so something was printed through it; data: not yet written."""

    fd: int
    used: bool
    data: bytes


def c_streams(image: Image, list_address: int) -> tuple[CStream, ...]:
    """Walk the list of FILEs; UnreadableError when anything in it is not as glibc has it.

    Covers printf, puts, C++ streams that are synchronised with stdio (the default), and everything written through
    them by libraries. It does not cover std::ios::sync_with_stdio(false).
    """
    return tuple(stream for address in _files(image, list_address) if (stream := _stream(image, address)))


def _files(image: Image, list_address: int) -> Iterator[int]:
    address = u64(image, list_address)
    seen: set[int] = set()
    while address:
        if address in seen or len(seen) >= MOST_STREAMS:
            raise UnreadableError("the list of open streams has no end", "")
        seen.add(address)
        yield address
        address = u64(image, address + 104)


def _stream(image: Image, address: int) -> CStream | None:
    """Read one FILE; None for a stream that is no descriptor's.

    struct _IO_FILE (glibc libio/bits/types/struct_FILE.h, 64 bit, unchanged from 2.1 to 2.42): _flags 0,
    _IO_write_base 32, _IO_write_ptr 40, _IO_buf_base 56, _IO_buf_end 64, _chain 104, _fileno 112, _wide_data 160,
    _mode 192 (positive: a stream of wide characters).
    """
    data = image.read(address, FILE_BYTES)
    (flags,) = struct.unpack_from("<I", data, 0)
    base, pointer, _, start, end = struct.unpack_from("<5Q", data, 32)
    (fd,) = struct.unpack_from("<i", data, 112)
    (wide,) = struct.unpack_from("<Q", data, 160)
    (mode,) = struct.unpack_from("<i", data, 192)
    if flags & MAGIC_MASK != MAGIC:
        raise UnknownLayoutError("the open streams are not as glibc has them", "")
    if fd < 0:
        return None
    if mode > 0 and u64(image, wide + 24) != u64(image, wide + 32):
        raise UnknownLayoutError("a stream of wide characters holds text", "")
    if base == pointer:
        return CStream(fd, start != 0, b"")
    if not (start <= base < pointer <= end) or pointer - base > MOST_PENDING_BYTES:
        raise UnreadableError("a stream changed while it was read", "")
    return CStream(fd, used=True, data=image.read(base, pointer - base))
