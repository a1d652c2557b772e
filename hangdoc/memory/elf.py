"""Finds the exported symbols of a program and its libraries in memory alone: no file of the target is opened.

Layouts: System V ABI, Elf64_Phdr, Elf64_Dyn, Elf64_Sym; DT_GNU_HASH as glibc's elf/dl-lookup.c reads it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from hangdoc.memory.image import PAGE_BYTES, Image, UnreadableError, c_string, u32, u64

AT_PHDR, AT_PHNUM = 3, 5
PT_LOAD, PT_DYNAMIC, PT_PHDR = 1, 2, 6
FILE_HEADER_BYTES, HEADER_BYTES = 64, 56
DT_NULL, DT_STRTAB, DT_SYMTAB, DT_DEBUG, DT_GNU_HASH = 0, 5, 6, 21, 0x6FFFFEF5
MOST_HEADERS, MOST_ENTRIES, MOST_CHAIN, MOST_OBJECTS, MOST_NAME = 64, 256, 512, 4096, 512
"""Bounds on what a damaged image may make us read: real ones have 14, 40, under 20, up to 500 and under 300."""
SYMBOL_BYTES, ENTRY_BYTES = 24, 16
PIECE_BYTES = 512
"""Of a dynamic section that is read at once: it need not be followed by readable bytes, only its page is."""


@dataclass(frozen=True)
class Loaded:
    """A mapped program or library. bias: what is added to an address of its file; name: "" for the program."""

    name: str
    bias: int
    dynamic: int


@dataclass(frozen=True)
class Exports:
    """Where a mapped object keeps its dynamic symbols. bias: what is added to an address of its file."""

    bias: int
    strings: int
    symbols: int
    hashes: int


@dataclass(frozen=True)
class Symbol:
    """An exported symbol: where it lies in the process, and its size."""

    address: int
    size_bytes: int


def loaded(image: Image, auxiliary: bytes) -> Iterator[Loaded]:
    """Yield the program and its libraries in the order of loading, as the loader lists them for debuggers.

    auxiliary: /proc/PID/auxv. From the program's headers to DT_DEBUG, struct r_debug (r_map at 8) and its chain of
    struct link_map (l_addr, l_name, l_ld, l_next; glibc's elf/link.h). A program that was started as an argument of
    the loader has the loader's headers there, which exports its r_debug. A static program has no such list.
    """
    vector = dict(struct.iter_unpack("<QQ", auxiliary[: len(auxiliary) // 16 * 16]))
    program = _program(image, vector.get(AT_PHDR, 0), vector.get(AT_PHNUM, 0))
    debug = _debug(image, program) if program else 0
    place = u64(image, debug + 8) if debug else 0
    for _ in range(MOST_OBJECTS):
        if not place:
            return
        bias, name, dynamic, place = struct.unpack("<QQQQ", image.read(place, 32))
        yield Loaded(c_string(image, name, MOST_NAME), bias, dynamic)


def _program(image: Image, headers: int, count: int) -> Loaded | None:
    """Return what the kernel started; None for a static program."""
    if not 0 < count <= MOST_HEADERS:
        raise UnreadableError("no program headers", "")
    table = image.read(headers, count * HEADER_BYTES)
    segments = [struct.unpack_from("<IIQQ", table, at * HEADER_BYTES) for at in range(count)]
    own = [address for kind, _, _, address in segments if kind == PT_PHDR]
    own += [address + FILE_HEADER_BYTES for kind, _, offset, address in segments if kind == PT_LOAD and not offset]
    dynamic = [address for kind, _, _, address in segments if kind == PT_DYNAMIC]
    if not dynamic or not own:
        return None
    bias = headers - own[0]
    return Loaded("", bias, bias + dynamic[0])


def _debug(image: Image, program: Loaded) -> int:
    table = _dynamic(image, program.dynamic)
    if DT_DEBUG in table:
        return table[DT_DEBUG]
    found = _exports(program, table)
    own = symbol(image, found, "_r_debug") if found else None
    return own.address if own else 0


def _dynamic(image: Image, address: int) -> dict[int, int]:
    table: dict[int, int] = {}
    end = address + ENTRY_BYTES * MOST_ENTRIES
    while address < end:
        size = min(PIECE_BYTES, PAGE_BYTES - address % PAGE_BYTES, end - address) // ENTRY_BYTES * ENTRY_BYTES
        for tag, value in struct.iter_unpack("<QQ", image.read(address, size or ENTRY_BYTES)):
            if tag == DT_NULL:
                return table
            table[tag] = value
        address += size or ENTRY_BYTES
    return table


def exports(image: Image, one: Loaded) -> Exports | None:
    """Read where a program or library has its symbols; None where it has none that are known."""
    return _exports(one, _dynamic(image, one.dynamic))


def _exports(one: Loaded, table: dict[int, int]) -> Exports | None:
    try:
        # glibc writes the final addresses into the section, other loaders leave those of the file.
        places = [table[tag] for tag in (DT_STRTAB, DT_SYMTAB, DT_GNU_HASH)]
    except KeyError:
        return None
    return Exports(one.bias, *(place if place >= one.bias else place + one.bias for place in places))


def symbol(image: Image, found: Exports, name: str) -> Symbol | None:
    """Look a name up in the hash table; None when it is not exported."""
    buckets, first, bloom, _ = struct.unpack("<IIII", image.read(found.hashes, 16))
    if not buckets:
        return None
    wanted = gnu_hash(name)
    table = found.hashes + 16 + 8 * bloom
    at = u32(image, table + 4 * (wanted % buckets))
    if at < first:
        return None
    chains = table + 4 * buckets
    for number in range(at, at + MOST_CHAIN):
        value = u32(image, chains + 4 * (number - first))
        if value | 1 == wanted | 1 and (one := _named(image, found, number, name)) is not None:
            return one
        if value & 1:
            return None
    return None


def _named(image: Image, found: Exports, number: int, name: str) -> Symbol | None:
    data = image.read(found.symbols + SYMBOL_BYTES * number, SYMBOL_BYTES)
    text, _, _, section, value, size = struct.unpack("<IBBHQQ", data)
    if not section or c_string(image, found.strings + text, len(name) + 1) != name:
        return None
    return Symbol(found.bias + value, size)


def gnu_hash(name: str) -> int:
    """Hash a symbol's name as DT_GNU_HASH does.

    >>> hex(gnu_hash("printf"))
    '0x156b2bb8'
    """
    value = 5381
    for byte in name.encode():
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value
