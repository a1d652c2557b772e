"""Finds the exported symbols of a program and its libraries in memory alone: no file of the target is opened.

Layouts: System V ABI, Elf64_Phdr, Elf64_Dyn, Elf64_Sym; DT_GNU_HASH as glibc's elf/dl-lookup.c reads it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from hangdoc.memory.image import Image, UnreadableError, c_string, u32, u64

AT_PHDR, AT_PHNUM = 3, 5
PT_DYNAMIC, PT_PHDR, HEADER_BYTES = 2, 6, 56
DT_NULL, DT_STRTAB, DT_SYMTAB, DT_DEBUG, DT_GNU_HASH = 0, 5, 6, 21, 0x6FFFFEF5
MOST_HEADERS, MOST_ENTRIES, MOST_CHAIN, MOST_OBJECTS, MOST_NAME = 64, 256, 512, 4096, 512
"""Bounds on what a damaged image may make us read: real ones have 14, 40, under 20, up to 500 and under 300."""
SYMBOL_BYTES = 24


@dataclass(frozen=True)
class Exports:
    """Where a mapped object keeps its dynamic symbols. bias: what is added to an address of the file."""

    name: str
    bias: int
    strings: int
    symbols: int
    hashes: int


def loaded(image: Image, auxiliary: bytes) -> Iterator[Exports]:
    """Yield the program and its libraries in the order of loading, as the loader lists them for debuggers.

    auxiliary: /proc/PID/auxv. From the program's headers to DT_DEBUG, struct r_debug (r_map at 8) and its chain of
    struct link_map (l_addr, l_name, l_ld, l_next; glibc's elf/link.h). A static program has no such list.
    """
    vector = dict(struct.iter_unpack("<QQ", auxiliary[: len(auxiliary) // 16 * 16]))
    table = _dynamic(image, _program(image, vector.get(AT_PHDR, 0), vector.get(AT_PHNUM, 0)))
    place = u64(image, table.get(DT_DEBUG, 0) + 8)
    for _ in range(MOST_OBJECTS):
        if not place:
            return
        bias, name, dynamic, place = struct.unpack("<QQQQ", image.read(place, 32))
        try:
            tags = _dynamic(image, dynamic)
            places = [_relocated(tags[tag], bias) for tag in (DT_STRTAB, DT_SYMTAB, DT_GNU_HASH)]
            yield Exports(c_string(image, name, MOST_NAME), bias, *places)
        except (UnreadableError, KeyError):
            continue


def _program(image: Image, headers: int, count: int) -> int:
    """Return where the program's dynamic section is."""
    if not 0 < count <= MOST_HEADERS:
        raise UnreadableError("no program headers", "")
    segments = [_segment(image.read(headers + at * HEADER_BYTES, HEADER_BYTES)) for at in range(count)]
    own = [address for kind, address in segments if kind == PT_PHDR]
    dynamic = [address for kind, address in segments if kind == PT_DYNAMIC]
    if not dynamic:
        raise UnreadableError("a static program has no dynamic section", "")
    return dynamic[0] + (headers - own[0] if own else 0)


def _segment(data: bytes) -> tuple[int, int]:
    kind, _, _, address = struct.unpack_from("<IIQQ", data)
    return kind, address


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
