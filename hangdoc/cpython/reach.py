"""Tells whether a frame, or an object, could get at a lock: only then may code in it have taken or released it."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

from hangdoc.cpython.frames import PIECE_BYTES, TABLE_BYTES, Frame, Reader
from hangdoc.cpython.objects import items
from hangdoc.memory.image import UnreadableError, u64, words

OBJECT_BYTES = 40
"""Enough of a lock, an RLock, a cell and a bound method."""
GENERATOR_BYTES = 256
"""Of a generator, whose local variables lie in it since 3.11, behind some 150 bytes; arbitrary."""
FRAME_OF_GENERATOR = 16
"""PyGenObject.gi_frame, up to 3.10."""
LEAST_POINTER = 1 << 16
GENERATOR = "generator"


@dataclass
class Reach:
    """Follows references of one process at one moment; what it has found out it looks at once."""

    reader: Reader
    minor: int
    _known: dict[tuple[int, int], bool] = field(default_factory=dict)

    def from_frame(self, frame: Frame, lock: int) -> bool:
        """Tell whether a frame has a lock in a local variable, a closure, an attribute of one, or a global it names."""
        place = frame.address, lock
        if place not in self._known:
            slots = self.slots(frame)
            self._known[place] = lock in slots or self._any(slots, lock) or self._by_global(frame, lock)
        return self._known[place]

    def slots(self, frame: Frame) -> tuple[int, ...]:
        """Return what a frame's local variables hold, and its value stack where that is in use.

        What lies above may be left over from another frame that was in the same place.
        """
        size = frame.stack - frame.locals + 8 * frame.in_use
        try:
            return words(self.reader.image.read(frame.locals, size)) if size else ()
        except UnreadableError:
            return ()

    def _any(self, pointers: Iterable[int], lock: int) -> bool:
        return any(self.from_object(one, lock) for one in dict.fromkeys(pointers) if _is_pointer(one))

    def from_object(self, address: int, lock: int) -> bool:
        """Tell whether an object refers to a lock: a bound method, a cell, or by an attribute."""
        place = address, lock
        if place not in self._known:
            self._known[place] = self._refers(address, lock)
        return self._known[place]

    def _refers(self, address: int, lock: int) -> bool:
        image = self.reader.image
        (data,) = image.read_many([(address, OBJECT_BYTES)])
        if data is None or lock in words(data):
            return data is not None
        return any(lock in table for table in self.reader.attributes(address))

    def from_context(self, address: int, lock: int) -> bool:
        """Tell whether a context manager refers to a lock, one that contextlib made of a generator included."""
        if self.from_object(address, lock):
            return True
        return any(
            self._generates(one, lock) for table in self.reader.attributes(address) for one in table if _is_pointer(one)
        )

    def _generates(self, address: int, lock: int) -> bool:
        try:
            if self.reader.type_name(address) != GENERATOR:
                return False
            place = address if self.minor >= 11 else u64(self.reader.image, address + FRAME_OF_GENERATOR)
        except UnreadableError:
            return False
        # An old frame begins with its blocks, behind which its local variables are.
        size = GENERATOR_BYTES if self.minor >= 11 else self.reader.layout.frame.locals + TABLE_BYTES
        return lock in self.reader.table(place, size)

    def _by_global(self, frame: Frame, lock: int) -> bool:
        try:
            found = list(items(self.reader.image, (3, self.minor), frame.globals))
        except (UnreadableError, struct.error):
            return False
        heads = self.reader.image.read_many([(key, self.reader.layout.text + PIECE_BYTES) for key, _ in found])
        named = [
            value
            for (_, value), head in zip(found, heads, strict=True)
            if head is not None and self._text(head) in frame.code.names
        ]
        return lock in named or self._any(named, lock)

    def _text(self, head: bytes) -> str:
        size, start = int.from_bytes(head[16:24], "little"), self.reader.layout.text
        return head[start : start + size].decode("latin-1") if size <= PIECE_BYTES else ""


def _is_pointer(number: int) -> bool:
    return number >= LEAST_POINTER and number % 8 == 0
