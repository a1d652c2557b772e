"""Finds exported symbols of a mapped program or library in memory alone: no file of the target is opened.

Layouts: System V ABI, Elf64_Ehdr, Elf64_Phdr, Elf64_Dyn, Elf64_Sym; DT_GNU_HASH as glibc's elf/dl-lookup.c reads it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from hangdoc.memory.image import Image, UnreadableError, c_string, u32, u64

PT_LOAD, PT_DYNAMIC = 1, 2
DT_NULL, DT_STRTAB, DT_SYMTAB, DT_GNU_HASH = 0, 5, 6, 0x6FFFFEF5
MOST_HEADERS, MOST_ENTRIES, MOST_CHAIN = 64, 256, 512
"""Bounds on what a damaged image may make us read: real ones have 14, 40 and under 20."""
SYMBOL_BYTES = 24


@dataclass(frozen=True)
class Exports:
    """Where a mapped object keeps its dynamic symbols. bias: what is added to an address of the file."""

    bias: int
    strings: int
    symbols: int
    hashes: int


def exports(image: Image, base: int) -> Exports:
    """Read the headers of an object whose first page is mapped at base; UnreadableError when it is none."""
    header = image.read(base, 64)
    if header[:6] != b"\x7fELF\x02\x01":
        raise UnreadableError("not an ELF object of 64 bits", "")
    (first,) = struct.unpack_from("<Q", header, 32)
    size, count = struct.unpack_from("<HH", header, 54)
    if size != 56 or not 0 < count <= MOST_HEADERS:
        raise UnreadableError("not an ELF program header", "")
    segments = [_segment(image.read(base + first + at * size, size)) for at in range(count)]
    loads = [address for kind, offset, address in segments if kind == PT_LOAD and offset == 0]
    dynamic = [address for kind, _, address in segments if kind == PT_DYNAMIC]
    if not loads or not dynamic:
        raise UnreadableError("an object without a dynamic section", "")
    bias = base - loads[0]
    table = _dynamic(image, bias + dynamic[0])
    try:
        places = (_relocated(table[tag], bias) for tag in (DT_STRTAB, DT_SYMTAB, DT_GNU_HASH))
        return Exports(bias, *places)
    except KeyError:
        raise UnreadableError("an object without exported symbols", "") from None


def _segment(data: bytes) -> tuple[int, int, int]:
    kind, _, offset, address = struct.unpack_from("<IIQQ", data)
    return kind, offset, address


def _dynamic(image: Image, address: int) -> dict[int, int]:
    table: dict[int, int] = {}
    for at in range(MOST_ENTRIES):
        tag, value = struct.unpack("<QQ", image.read(address + 16 * at, 16))
        if tag == DT_NULL:
            break
        table[tag] = value
    return table


def _relocated(value: int, bias: int) -> int:
    # glibc writes the final addresses into the section, other loaders leave those of the file.
    return value if value >= bias else value + bias


def symbol(image: Image, found: Exports, name: str) -> int | None:
    """Return the address of an exported symbol; None when there is none of this name."""
    buckets, first, bloom, _ = struct.unpack("<IIII", image.read(found.hashes, 16))
    if not buckets:
        return None
    wanted = gnu_hash(name)
    table = found.hashes + 16 + 8 * bloom
    at = u32(image, table + 4 * (wanted % buckets))
    if at < first:
        return None
    chains = table + 4 * buckets
    for _ in range(MOST_CHAIN):
        value = u32(image, chains + 4 * (at - first))
        if value | 1 == wanted | 1 and (address := _named(image, found, at, name)) is not None:
            return address
        if value & 1:
            return None
        at += 1
    return None


def _named(image: Image, found: Exports, at: int, name: str) -> int | None:
    place = found.symbols + SYMBOL_BYTES * at
    text, section = u32(image, place), u32(image, place + 4) >> 16
    if not section or c_string(image, found.strings + text, len(name) + 1) != name:
        return None
    return found.bias + u64(image, place + 8)


def gnu_hash(name: str) -> int:
    """Hash a symbol's name as DT_GNU_HASH does.

    >>> hex(gnu_hash("printf"))
    '0x156b2bb8'
    """
    value = 5381
    for byte in name.encode():
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value
