"""Find exported symbols of a program or a library in the memory of the process that runs it.

The dynamic section, its symbols, names and hash table are part of what is loaded (System V ABI, chapter 5; ELF gABI
"DT_GNU_HASH" as in glibc's elf/dl-lookup.c). Memory is what runs: a file that was deleted, replaced by an update or
that lies in a container is no special case, and looking up a name takes some ten small reads instead of a whole file.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from hangdoc_probes._image import Image, UnreadError

ELF64_LITTLE_ENDIAN = b"\x7fELF\x02\x01\x01"
MACHINES = {62, 183}
"""EM_X86_64 and EM_AARCH64."""
ET_EXEC, ET_DYN = 2, 3
PT_LOAD, PT_DYNAMIC = 1, 2
DT_STRTAB, DT_SYMTAB, DT_GNU_HASH = 5, 6, 0x6FFFFEF5

MOST_PROGRAM_HEADERS = 64
MOST_DYNAMIC_ENTRIES = 256
MOST_CHAIN = 512
"""Entries looked at for one name; a bucket holds about four. All three arbitrary, to bound what a lie can cost."""


@dataclass(frozen=True)
class Symbol:
    """An exported symbol: where it lies in the process, and its size."""

    address: int
    size_bytes: int


@dataclass(frozen=True)
class Exports:
    """The table of symbols of one loaded program or library. bias: what is added to an address of its file."""

    bias: int
    symbols: int
    names: int
    hashes: int

    def find(self, image: Image, name: bytes) -> Symbol | None:
        """Look a name up in the hash table; None when it is not exported."""
        buckets, first, blooms, _ = struct.unpack("<4I", image.piece(self.hashes, 16))
        if not (0 < buckets < 1 << 24 and blooms < 1 << 24):
            return None
        hashed = gnu_hash(name)
        bucket_at = self.hashes + 16 + 8 * blooms
        (index,) = struct.unpack("<I", image.piece(bucket_at + 4 * (hashed % buckets), 4))
        chain_at = bucket_at + 4 * buckets
        for number in range(index, index + MOST_CHAIN if index >= first else index):
            (entry,) = struct.unpack("<I", image.piece(chain_at + 4 * (number - first), 4))
            if entry | 1 == hashed | 1 and (found := self._symbol(image, number, name)):
                return found
            if entry & 1:
                break
        return None

    def _symbol(self, image: Image, number: int, name: bytes) -> Symbol | None:
        name_at, _, _, section, value, size = struct.unpack("<IBBHQQ", image.piece(self.symbols + 24 * number, 24))
        if not section or image.name(self.names + name_at) != name:
            return None
        return Symbol(self.bias + value, size)


def exports(image: Image, base: int) -> Exports | None:
    """Read the tables of what is loaded at an address; None where there is no such program or library."""
    try:
        return _exports(image, base)
    except (UnreadError, struct.error):
        return None


def _exports(image: Image, base: int) -> Exports | None:
    header = image.piece(base, 64)
    kind, machine = struct.unpack_from("<HH", header, 16)
    headers_at, _, _, _, size, count = struct.unpack_from("<QQIHHH", header, 32)
    if not header.startswith(ELF64_LITTLE_ENDIAN) or kind not in {ET_EXEC, ET_DYN} or machine not in MACHINES:
        return None
    if size != 56 or not 0 < count <= MOST_PROGRAM_HEADERS:
        return None
    table = image.piece(base + headers_at, size * count)
    segments = [struct.unpack_from("<IIQQQQQQ", table, 56 * number) for number in range(count)]
    # The first page of the file lies at its segment's own address, or that much further on.
    first = next((one[3] for one in segments if one[0] == PT_LOAD and one[2] == 0), None)
    dynamic = next((one for one in segments if one[0] == PT_DYNAMIC), None)
    if first is None or dynamic is None:
        return None
    bias = base - first
    entries = _dynamic(image, bias + dynamic[3], dynamic[6])
    if not {DT_SYMTAB, DT_STRTAB, DT_GNU_HASH} <= entries.keys():
        return None
    # glibc's loader writes the final address into the section, others leave the file's.
    at = {tag: value if value >= base else bias + value for tag, value in entries.items()}
    return Exports(bias, at[DT_SYMTAB], at[DT_STRTAB], at[DT_GNU_HASH])


def _dynamic(image: Image, address: int, size_bytes: int) -> dict[int, int]:
    count = min(size_bytes // 16, MOST_DYNAMIC_ENTRIES)
    numbers = image.numbers(address, 2 * count)
    return dict(zip(numbers[::2], numbers[1::2], strict=True))


def gnu_hash(name: bytes) -> int:
    """Return the hash of a name (dl_new_hash of glibc).

    >>> hex(gnu_hash(b"printf"))
    '0x156b2bb8'
    """
    hashed = 5381
    for byte in name:
        hashed = (hashed * 33 + byte) & 0xFFFFFFFF
    return hashed
