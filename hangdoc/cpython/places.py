"""Looks at the instruction of a running thread again and again, without stopping it.

Since 3.11 a frame keeps the instruction that it is at (prev_instr in Include/internal/pycore_frame.h up to 3.12, since
instr_ptr), written as the interpreter goes on; the frame of a thread is one or two pointers behind its PyThreadState.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hangdoc.cpython.frames import CODE_UNIT_BYTES, Reader, pointer_at
from hangdoc.cpython.layouts import JUMPS_BACK
from hangdoc.cpython.runtime import PythonThread, Runtime
from hangdoc.memory.image import Image, UnknownLayoutError, UnreadableError, u64

LOOKS = 40
"""Looks at one thread in one reading. Arbitrary: a loop of a few instructions goes back thousands of times in between,
and by chance an instruction that is not before the last one comes up in about every second look."""


@dataclass(frozen=True)
class Place:
    """One look: the innermost frame, its code object and its instruction, as addresses."""

    frame: int
    code: int
    instruction: int


@dataclass(frozen=True)
class Seen:
    """All looks at one thread. function, file: of the first one's code, as CPython's frame says.

    endless: all looks were in a loop that is nothing but a jump back.
    """

    function: str
    file: str
    looks: tuple[Place, ...]
    endless: bool = False

    @property
    def same_frame(self) -> int:
        """How many looks show the frame of the first one."""
        first = self.looks[0]
        return sum((one.frame, one.code) == (first.frame, first.code) for one in self.looks)

    @property
    def places(self) -> int:
        """How many different instructions of that frame were seen."""
        first = self.looks[0]
        return len({one.instruction for one in self.looks if one.code == first.code})

    @property
    def turns(self) -> int:
        """How often a look shows an earlier instruction of the same frame than the one before."""
        pairs = zip(self.looks, self.looks[1:], strict=False)
        return sum(
            (one.frame, one.code) == (next_.frame, next_.code) and next_.instruction < one.instruction
            for one, next_ in pairs
        )


def look_at(image: Image, runtime: Runtime, thread: PythonThread, pause: Callable[[], None]) -> Seen | None:
    """Look LOOKS times at a thread, with a pause between; None when it could not be read twice, or runs no frame.

    UnknownLayoutError before 3.11, whose frames keep no pointer that this could follow.
    """
    layout = runtime.layout
    if not layout.frame.instruction:
        raise UnknownLayoutError(f"CPython 3.{runtime.minor} keeps no instruction in its frames", "")
    looks: list[Place] = []
    for _ in range(LOOKS):
        if (place := _place(image, runtime, thread)) is not None:
            looks.append(place)
        pause()
    if len(looks) < 2:
        return None
    try:
        code = Reader(image, layout).code(looks[0].code)
        endless = _is_endless(image, runtime, looks)
    except UnreadableError:
        return None
    return Seen(code.name, code.filename, tuple(looks), endless)


MOST_NOTHINGS = 8
"""Instructions that do nothing before the jump back: `while True: continue` has one. Arbitrary."""


def _is_endless(image: Image, runtime: Runtime, looks: list[Place]) -> bool:
    """Tell whether all looks are in a loop that has nothing between the target of its jump back and the jump.

    Rule: the latest instruction seen is a jump back, over instructions only that do nothing. Why it works: none of
    these calls, tests or raises anything, so that only a signal's handler or another thread can end the loop.
    """
    jump = JUMPS_BACK.get(runtime.minor)
    if jump is None or any((one.frame, one.code) != (looks[0].frame, looks[0].code) for one in looks):
        return False
    at = max(one.instruction for one in looks)
    opcode, units = image.read(at, CODE_UNIT_BYTES)
    nothings = units - 1 - jump.caches
    if opcode not in jump.jumps or not 0 <= nothings <= MOST_NOTHINGS:
        return False
    begin = at - nothings * CODE_UNIT_BYTES
    body = image.read(begin, at - begin) if nothings else b""
    return all(one == jump.no_operation for one in body[::CODE_UNIT_BYTES]) and all(
        one.instruction >= begin for one in looks
    )


def _place(image: Image, runtime: Runtime, thread: PythonThread) -> Place | None:
    """Look once; None where the frame went away while it was read."""
    layout = runtime.layout
    try:
        frame = thread.state
        for offset in layout.to_frame:
            frame = u64(image, frame + offset)
        data = image.read(frame, layout.frame.header_bytes) if frame else b""
    except UnreadableError:
        return None
    if not data:
        return None
    return Place(frame, pointer_at(data, layout.frame.code), pointer_at(data, layout.frame.instruction))
