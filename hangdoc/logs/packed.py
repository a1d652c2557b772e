"""Unpacks logs: gzip, zstd, bzip2 and xz, as far as they go, and says where one was cut."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Literal, Protocol, TypeAlias, cast

import zstandard

Packing: TypeAlias = Literal["gz", "zst", "bz2", "xz"]

MAGIC: dict[bytes, Packing] = {b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst", b"BZh": "bz2", b"\xfd7zXZ": "xz"}
"""How packed files begin."""

_LARGEST_WINDOW_BYTES = 128 << 20
"""zstd's --long=27, its largest by default."""

_ZSTD_STEP_BYTES = 1024
"""Packed bytes that are unpacked at a time: 4 bytes may become a block of 128 KiB, so these 32 MiB at most."""

DAMAGED = (EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError, ValueError)
"""What unpacking a cut or broken file raises; EOFError: it was cut."""


class Readable(Protocol):
    """What gives the packed bytes."""

    def read(self, size: int = -1, /) -> bytes:
        """Return at most size bytes; b"" at the end."""
        ...


def packing_of(head: bytes) -> Packing | None:
    """Return how a file is packed, by its first bytes; None when it is not."""
    return next((packing for magic, packing in MAGIC.items() if head.startswith(magic)), None)


def unpacked(file: Readable, packing: Packing, piece_bytes: int) -> Iterator[bytes]:
    """Yield the unpacked bytes in pieces of some size; one of DAMAGED after all that a cut or broken file gives."""
    if packing == "zst":
        yield from _of_zstd(file, piece_bytes)
        return
    packed = cast("BinaryIO", file)
    with _reader(packed, packing) as reader:
        while piece := reader.read1(piece_bytes):  # read would lose what came before the cut
            yield piece


def _reader(file: BinaryIO, packing: Packing) -> gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile:
    if packing == "gz":
        return gzip.GzipFile(fileobj=file, mode="rb")
    return bz2.BZ2File(file) if packing == "bz2" else lzma.LZMAFile(file)


def _of_zstd(file: Readable, piece_bytes: int) -> Iterator[bytes]:
    """Unpack frame by frame: zstandard's own reader does not tell a cut from an end."""
    unpacker = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW_BYTES)
    frame, begun, kept = unpacker.decompressobj(), False, bytearray()
    fault: Exception | None = None
    try:
        while data := file.read(_ZSTD_STEP_BYTES):
            while data:
                kept += frame.decompress(data)
                data, begun = frame.unused_data, not frame.eof
                if frame.eof:
                    frame = unpacker.decompressobj()
            if len(kept) >= piece_bytes:
                yield bytes(kept)
                kept.clear()
    except zstandard.ZstdError as error:
        fault = error
    if kept:
        yield bytes(kept)
    if fault is not None or begun:
        raise fault or EOFError("it ends within a frame")
