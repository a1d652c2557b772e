"""Walks the frames of a Python thread and says which slots of a frame's value stack are in use for certain.

A frame that runs keeps its stack pointer in a register, and a slot above it keeps what lay there last: a lock that was
released long ago. In use for certain is what lies below the innermost try or with block around the instruction. Up to
3.10 the frame lists its blocks (f_blockstack); since 3.11 they are in the code's exception table
(Objects/exception_handling_notes.txt), by instruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from hangdoc.cpython.layouts import (
    BLOCK_BYTES,
    BLOCK_LEVEL,
    BYTES_DATA,
    BYTES_SIZE,
    DICT_KEYS,
    DICT_VALUES,
    MOST_BLOCKS,
    OBJECT_TYPE,
    TUPLE_ITEMS,
    TUPLE_SIZE,
    TYPE_DICTIONARY,
    TYPE_NAME,
    Layout,
)
from hangdoc.memory.image import Image, UnreadableError, c_string, i32, i64, u64, words

MOST_FRAMES = 500
"""Frames of one thread; arbitrary."""
MOST_SLOTS = 1000
MOST_NAMES = 2000
MOST_TEXT_BYTES = 512
"""Bounds on what a damaged object may make us read; arbitrary."""
TABLE_BYTES, PIECE_BYTES = 512, 64
"""What is searched of an object's attributes: of a condition for its own lock, the first of seven."""
OWNED_BY_C = 3
"""FRAME_OWNED_BY_CSTACK: a frame that only marks where C called Python (since 3.12)."""
CODE_UNIT_BYTES = 2


@dataclass(frozen=True, eq=False)
class Code:
    """A code object, told from others by where it was read.

    handlers: (first instruction, end, stack depth of the handler), by place in the code.
    """

    name: str
    filename: str
    names: frozenset[str]
    locals: int
    stack_size: int
    start: int
    handlers: tuple[tuple[int, int, int], ...]

    def depth_at(self, instruction: int) -> int:
        """Return how many stack slots the handler around an instruction keeps; 0 when none is around it."""
        place = instruction - self.start
        return next((depth for first, end, depth in self.handlers if first <= place < end), 0)


class Frame(NamedTuple):
    """One frame; a tuple, because a look makes thousands.

    stack: address of the value stack; in_use: how many of its slots are for certain; globals: its module's names.
    """

    address: int
    code: Code
    locals: int
    stack: int
    in_use: int
    globals: int


@dataclass
class Reader:
    """Reads objects of one process at one moment; what it has read of code and types it reads once."""

    image: Image
    layout: Layout
    codes: dict[int, Code] = field(default_factory=dict)
    types: dict[int, str] = field(default_factory=dict)
    depths: dict[tuple[int, int], int] = field(default_factory=dict)

    def type_name(self, address: int) -> str:
        """Return the name of an object's type."""
        return self.name_of_type(u64(self.image, address + OBJECT_TYPE))

    def name_of_type(self, kind: int) -> str:
        """Return the name of a type object."""
        if kind not in self.types:
            try:
                self.types[kind] = c_string(self.image, u64(self.image, kind + TYPE_NAME))
            except UnreadableError:
                self.types[kind] = ""
        return self.types[kind]

    def frames(self, frame: int) -> Iterator[Frame]:
        """Yield the frames of a thread from the innermost on; it ends where the chain cannot be read."""
        for _ in range(MOST_FRAMES):
            if not frame:
                return
            try:
                data = self.image.read(frame, self.layout.frame.header_bytes)
                found = self.frame_of(frame, data)
            except UnreadableError:
                return
            if found is not None:
                yield found
            frame = self.previous(data)

    def innermost(self, frames: list[int]) -> list[tuple[int, Code] | None]:
        """Read many threads' innermost frames at once: where their local variables lie, and their code."""
        layout = self.layout.frame
        pointers = self.image.read_many([(frame + layout.code, 8) for frame in frames])
        found: list[tuple[int, Code] | None] = []
        for frame, pointer in zip(frames, pointers, strict=True):
            try:
                code = self.code(int.from_bytes(pointer or b"", "little"))
                found.append((frame + layout.locals, code))
            except UnreadableError:
                found.append(None)
        return found

    def frame(self, address: int) -> Frame | None:
        """Read one frame; None for one that has no code."""
        return self.frame_of(address, self.image.read(address, self.layout.frame.header_bytes))

    def previous(self, data: bytes) -> int:
        """Return the frame that called the one whose header this is; 0 when there is none."""
        return pointer_at(data, self.layout.frame.previous)

    def frame_of(self, address: int, data: bytes) -> Frame | None:
        """Make a frame of its header."""
        layout = self.layout.frame
        if layout.owner and data[layout.owner] == OWNED_BY_C:
            return None
        code_at = pointer_at(data, layout.code)
        code = self.codes.get(code_at) or self.code(code_at)
        first = address + layout.locals
        if layout.instruction:
            stack = first + 8 * code.locals
            in_use = self._depth(code_at, code, pointer_at(data, layout.instruction))
        else:
            stack = pointer_at(data, layout.stack)
            in_use = _block_level(data, *layout.blocks)
        if in_use > code.stack_size or not 0 <= stack - first <= 8 * MOST_SLOTS:
            raise UnreadableError("not a frame", "")
        return Frame(address, code, first, stack, in_use, pointer_at(data, layout.globals))

    def _depth(self, code_at: int, code: Code, instruction: int) -> int:
        # Threads of a pool wait at the same instruction.
        place = code_at, instruction
        depth = self.depths.get(place)
        if depth is None:
            depth = self.depths[place] = code.depth_at(instruction)
        return depth

    def code(self, address: int) -> Code:
        """Read a code object."""
        if address not in self.codes:
            self.codes[address] = self._code(address)
        return self.codes[address]

    def _code(self, address: int) -> Code:
        image, layout = self.image, self.layout.code
        if self.type_name(address) != "code":
            raise UnreadableError("not a code object", "")
        stack_size = i32(image, address + layout.stack_size)
        count = i32(image, address + layout.locals) if layout.locals else 0
        if not (0 <= stack_size <= MOST_SLOTS and 0 <= count <= MOST_SLOTS):
            raise UnreadableError("not a code object", "")
        return Code(
            name=self.text(u64(image, address + layout.name)),
            filename=self.text(u64(image, address + layout.filename)),
            names=frozenset(self._texts(u64(image, address + layout.names))),
            locals=count,
            stack_size=stack_size,
            start=address + layout.start,
            handlers=parse_handlers(self._bytes(u64(image, address + layout.exceptions))) if layout.exceptions else (),
        )

    def text(self, address: int) -> str:
        """Read a string of ASCII; any other is "", because no name that is looked for has other letters."""
        size, state = u64(self.image, address + 16), self.image.read(address + 32, 1)[0]
        if self.type_name(address) != "str" or not state & 0x40:
            return ""
        return self.image.read(address + self.layout.text, min(size, MOST_TEXT_BYTES)).decode("latin-1") if size else ""

    def attributes(self, address: int) -> Iterator[tuple[int, ...]]:
        """Yield the arrays and tables that an object's attributes may lie in, in words, with what lies behind each."""
        image, layout = self.image, self.layout.attributes
        try:
            place = i64(image, u64(image, address + OBJECT_TYPE) + TYPE_DICTIONARY)
            if place >= 0:
                # Its type says where: nowhere, or at a place of its own, as all do up to 3.10.
                yield from self._of_dictionary(u64(image, address + place) if place else 0)
                return
            if layout.inline:
                yield self.table(address + layout.inline)
            if layout.array and (array := u64(image, address + layout.array)):
                yield self.table(array)
            yield from self._of_dictionary(u64(image, address + layout.dictionary))
        except UnreadableError:
            return

    def _of_dictionary(self, dictionary: int) -> Iterator[tuple[int, ...]]:
        if dictionary & 1:
            yield self.table(dictionary + 1)
        elif dictionary:
            yield self.table(u64(self.image, dictionary + DICT_KEYS))
            yield self.table(u64(self.image, dictionary + DICT_VALUES))

    def table(self, address: int, size: int = TABLE_BYTES) -> tuple[int, ...]:
        """Read what can be read of a table, in pieces: a short one may end where the mapping does."""
        pieces = self.image.read_many([(address + at, PIECE_BYTES) for at in range(0, size, PIECE_BYTES)])
        return words(b"".join(piece or bytes(PIECE_BYTES) for piece in pieces))

    def _texts(self, address: int) -> Iterator[str]:
        if self.type_name(address) != "tuple":
            raise UnreadableError("not a tuple", "")
        count = u64(self.image, address + TUPLE_SIZE)
        if count > MOST_NAMES:
            raise UnreadableError("not a tuple of names", "")
        items = words(self.image.read(address + TUPLE_ITEMS, 8 * count)) if count else ()
        yield from map(self.text, items)

    def _bytes(self, address: int) -> bytes:
        if self.type_name(address) != "bytes":
            raise UnreadableError("not a bytes object", "")
        size = u64(self.image, address + BYTES_SIZE)
        return self.image.read(address + BYTES_DATA, size) if size else b""


def pointer_at(data: bytes, offset: int) -> int:
    """Return the pointer that lies so far into what was read."""
    return int.from_bytes(data[offset : offset + 8], "little")


def _block_level(data: bytes, count_at: int, blocks_at: int) -> int:
    """Return the stack level of the innermost block of a frame of 3.9 or 3.10."""
    count = int.from_bytes(data[count_at : count_at + 4], "little", signed=True)
    if not 0 < count <= MOST_BLOCKS:
        return 0
    at = blocks_at + BLOCK_BYTES * (count - 1) + BLOCK_LEVEL
    return max(int.from_bytes(data[at : at + 4], "little", signed=True), 0)


def parse_handlers(table: bytes) -> tuple[tuple[int, int, int], ...]:
    r"""Read an exception table: (first, end, depth) in bytes of code; a table that is cut is read up to the cut.

    Numbers are in groups of six bits, the first group first, bit 6 says that another follows, bit 7 that an entry
    begins: start, length, target, depth and a flag.

    >>> parse_handlers(bytes([0x80 | 3, 5, 30, 1 << 1]))
    ((6, 16, 1),)
    """
    found, place = [], 0
    while place < len(table):
        numbers = []
        for _ in range(4):
            value = 0
            while place < len(table):
                byte = table[place]
                place += 1
                value = value << 6 | byte & 63
                if not byte & 64:
                    break
            numbers.append(value)
        first, length, _, depth = numbers
        found.append((first * CODE_UNIT_BYTES, (first + length) * CODE_UNIT_BYTES, depth >> 1))
    return tuple(found)
