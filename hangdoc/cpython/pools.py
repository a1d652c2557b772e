"""Finds the objects of a few types in CPython's own memory, whoever refers to them.

pymalloc (Objects/obmalloc.c, 3.9 to 3.14) keeps objects of one size together in pools, which begin at multiples of
their own size and say in their header of 48 bytes which size they are of: count 0 (4 bytes), freeblock 8, nextpool 16,
prevpool 24, arenaindex 32, szidx 36, nextoffset 40, maxnextoffset 44 (4 bytes each).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from hangdoc.memory.image import Image, UnknownLayoutError, u64
from hangdoc.procfs.maps import Mapping

HEADER_BYTES, ALIGNMENT = 48, 16
POOL_BYTES = (16384, 4096)
"""Since 3.10, and before."""
TYPE_SIZE = 32
"""PyTypeObject.tp_basicsize."""
GC_HEAD_BYTES = 16
"""PyGC_Head, before every object that the collector knows."""
LARGEST_BLOCK = 512
MOST_POOLS = 400_000
"""Headers that are read of one process: 6 GiB of pools of 16 KiB, 1.5 of 4 KiB. Arbitrary."""
MOST_REFERENCES = 1 << 30
AT_ONCE = 4096


def objects_of(image: Image, mappings: Iterable[Mapping], kinds: Iterable[int], example: int) -> tuple[int, ...]:
    """Return every object of exactly these types; UnknownLayoutError where they are not to be found like this.

    example: an object of one of these types, which has to be in a pool itself.
    """
    wanted = tuple(kinds)
    classes = {_size_class(image, kind) for kind in wanted}
    heads = ((size, image.read(example & -size, HEADER_BYTES)) for size in POOL_BYTES)
    size = next((size for size, head in heads if _is_pool(head, classes, size)), None)
    if size is None:
        raise UnknownLayoutError("this python does not keep its objects as CPython does", "")
    pools = [place for start, end in _data(mappings, size) for place in range(start, end, size)]
    if len(pools) > MOST_POOLS:
        raise UnknownLayoutError("this python has more memory than is searched", "")
    return tuple(
        found
        for at in range(0, len(pools), AT_ONCE)
        for found in _among(image, pools[at : at + AT_ONCE], classes, size, wanted)
    )


def _data(mappings: Iterable[Mapping], size: int) -> Iterator[tuple[int, int]]:
    for one in mappings:
        if one.readable and one.writable and not one.shared and (not one.path or one.path.startswith("[anon")):
            yield -(-one.start // size) * size, one.end // size * size


def _size_class(image: Image, kind: int) -> int:
    size = GC_HEAD_BYTES + u64(image, kind + TYPE_SIZE)
    if size > LARGEST_BLOCK:
        raise UnknownLayoutError("streams of this python are larger than they are known", "")
    return (size - 1) // ALIGNMENT


def _is_pool(head: bytes | None, classes: set[int], size: int) -> bool:
    if head is None:
        return False
    count, _, _, _, _, _, kind, following, most = struct.unpack("<IIQQQIIII", head)
    block = (kind + 1) * ALIGNMENT
    return kind in classes and 0 < count <= size // block and HEADER_BYTES <= following <= size and most == size - block


def _among(image: Image, places: list[int], classes: set[int], size: int, kinds: tuple[int, ...]) -> Iterator[int]:
    heads = image.read_many([(place, HEADER_BYTES) for place in places])
    for place, head in zip(places, heads, strict=True):
        if head is not None and _is_pool(head, classes, size):
            block = (struct.unpack_from("<I", head, 36)[0] + 1) * ALIGNMENT
            yield from _in_pool(image, place, block, size, kinds)


def _in_pool(image: Image, place: int, block: int, size: int, kinds: tuple[int, ...]) -> Iterator[int]:
    (data,) = image.read_many([(place, size)])
    for at in range(HEADER_BYTES, size - block + 1, block) if data else ():
        count, kind = struct.unpack_from("<2Q", data or b"", at + GC_HEAD_BYTES)
        if kind in kinds and 0 < count < MOST_REFERENCES:
            yield place + at + GC_HEAD_BYTES
