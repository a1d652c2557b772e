"""An address space made of bytes, with holes, for readers that must survive anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hangdoc.memory.image import UnreadableError, unreadable


class Synthetic:
    """Pieces of memory by address; between them nothing is mapped."""

    def __init__(self, pieces: Mapping[int, bytes]) -> None:
        self._pieces = dict(pieces)

    def read(self, address: int, size: int) -> bytes:
        for start, data in self._pieces.items():
            if start <= address and address + size <= start + len(data):
                return data[address - start : address - start + size]
        raise unreadable(address, size)

    def read_many(self, ranges: Sequence[tuple[int, int]]) -> list[bytes | None]:
        return [self._or_none(address, size) for address, size in ranges]

    def _or_none(self, address: int, size: int) -> bytes | None:
        try:
            return self.read(address, size)
        except UnreadableError:
            return None


class Endless:
    """An address space in which every address can be read, and holds what a function of it says."""

    def __init__(self, word_at: Callable[[int], int]) -> None:
        self._word_at = word_at

    def read(self, address: int, size: int) -> bytes:
        first = address // 8
        last = (address + size + 7) // 8
        data = b"".join(self._word_at(word * 8).to_bytes(8, "little") for word in range(first, last))
        return data[address % 8 : address % 8 + size]

    def read_many(self, ranges: Sequence[tuple[int, int]]) -> list[bytes | None]:
        return [self.read(address, size) for address, size in ranges]
