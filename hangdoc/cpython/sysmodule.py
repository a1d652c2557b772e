"""Find the names of the sys module in a CPython's memory, without a table of offsets."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from hangdoc.cpython.objects import Cpython, items, key_of, numbers
from hangdoc.memory.image import Image, UnknownLayoutError, UnreadableError
from hangdoc.procfs.maps import Mapping

WANTED = frozenset({b"stdout", b"__stdout__", b"stderr", b"__stderr__"})
SIGNATURE = WANTED | {b"modules", b"path", b"argv"}
"""Names that only the sys module has together."""

FEWEST_NAMES, MOST_NAMES = 40, 2000
"""Names in sys: 80 to 110 in these versions; arbitrary bounds around them."""

RUNTIME_BYTES = 1 << 20
"""_PyRuntime is 0.6 MiB at most (3.13); arbitrary above."""

INTERPRETER_BYTES = (1 << 17, 1 << 14, 1 << 12)
"""PyInterpreterState is 0.1 MiB at most before 3.12, when it lies apart; the heap around it may end before."""


class DataRanges:
    """Where objects may lie: the mappings that are readable and writable."""

    def __init__(self, mappings: Iterable[Mapping]) -> None:
        data = [one for one in mappings if one.readable and one.writable]
        self._starts = [one.start for one in data]
        self._ends = [one.end for one in data]

    def __contains__(self, address: int) -> bool:
        at = bisect_right(self._starts, address) - 1
        return at >= 0 and address < self._ends[at]


def find_sys(image: Image, python: Cpython, ranges: DataRanges) -> int:
    """Return the address of sys.__dict__ of the main interpreter.

    Rule: the first pointer in _PyRuntime, then in what its first 512 bytes point at, to a dictionary that has the
    names of SIGNATURE. Why it works: the interpreter state holds its sys module's dictionary in all versions, and no
    other dictionary has these names. When it fails: never seen; then the reading is missing.
    """
    tried: set[int] = set()
    runtime = _block(image, python.runtime, (min(python.runtime_bytes, RUNTIME_BYTES) or INTERPRETER_BYTES[0],))
    found = _first(image, python, ranges, runtime, tried)
    for pointer in runtime[:64] if found is None else ():
        if pointer in ranges:
            found = _first(image, python, ranges, _block(image, pointer, INTERPRETER_BYTES), tried)
        if found is not None:
            break
    if found is None:
        raise UnknownLayoutError("the sys module of this python was not found", "")
    return found


def names_of(image: Image, python: Cpython, mapping: int) -> dict[bytes, int] | None:
    """Return the streams of sys.__dict__; None when this is another dictionary."""
    kind, used = numbers(image, mapping + 8, 2)
    if kind != python.dict_type or not FEWEST_NAMES <= used <= MOST_NAMES:
        return None
    found = {key_of(image, python, key): value for key, value in items(image, python.version, mapping)}
    if not found.keys() >= SIGNATURE:
        return None
    return {name: value for name, value in found.items() if name in WANTED and name is not None}


def _first(image: Image, python: Cpython, ranges: DataRanges, block: Sequence[int], tried: set[int]) -> int | None:
    for pointer in block:
        if pointer % 8 or pointer in tried or pointer not in ranges:
            continue
        tried.add(pointer)
        try:
            if names_of(image, python, pointer) is not None:
                return pointer
        except (UnreadableError, struct.error):
            continue  # no dictionary
    return None


def _block(image: Image, address: int, sizes: Iterable[int]) -> tuple[int, ...]:
    for size in sizes:
        try:
            return numbers(image, address, size // 8)
        except UnreadableError:
            continue
    return ()
