"""The short words of the case files: system calls, frames, descriptors."""

from __future__ import annotations

from typing import Any

from hangdoc.model.fd import OpenFile, PipeFill
from hangdoc.model.reading import Known, Missing
from hangdoc.model.stack import Frame
from hangdoc.model.thread import SystemCall
from hangdoc.procfs.descriptor import kind_of

CALLS = {
    "read": 0,
    "write": 1,
    "open": 257,
    "poll": 7,
    "epoll": 232,
    "connect": 42,
    "accept": 43,
    "recv": 45,
    "futex": 202,
    "flock": 73,
    "fcntl": 72,
    "sleep": 230,
    "wait": 61,
    "yield": 24,
}
"""System calls by the names that a case may use, as x86_64 numbers them."""

UNASKED = Missing("case", "unsupported", "the case does not say")


def call(words: list[str]) -> SystemCall | None:
    """Read "running", "futex" (a private lock without a timeout), "futex timed", or a call and its arguments."""
    name, *rest = words
    if name == "running":
        return None
    if name == "futex":
        operation = 0x109 if "shared" in rest else 0x189
        return SystemCall(CALLS[name], (0x7F00, operation, 0, 0x7FFE if "timed" in rest else 0, 0, 0xFFFFFFFF))
    arguments = tuple(int(word) for word in rest)
    return SystemCall(CALLS[name], (*arguments, 0, 0, 0, 0, 0, 0)[:6])


def frame(line: str) -> Frame:
    function, place = line.split(None, 1)
    file, colon, number = place.strip().rpartition(":")
    return Frame(function, file, int(number)) if colon and number.isdigit() else Frame(function, place.strip(), 1)


def open_file(text: str) -> OpenFile:
    """Read "descriptor access target", and of a pipe how full it is: "1 w pipe:[7] 65536/65536"."""
    number, access, target, *fill = text.split()
    kind = kind_of(target)
    is_file = kind == "file"
    queued, _, capacity = (fill[0] if fill else "0/65536").partition("/")
    return OpenFile(
        fd=int(number),
        kind=kind,
        target=target,
        access=access,
        position=Known(0) if is_file else UNASKED,
        size_bytes=Known(100) if is_file else UNASKED,
        modified_wall_ns=Known(0) if is_file else UNASKED,
        pipe=Known(PipeFill(int(queued), int(capacity))) if kind == "pipe" else UNASKED,
    )


def at(value: Any, number: int) -> Any:
    """Return the value of a round: of a list the one of that place, and the last one from then on."""
    return value[min(number, len(value) - 1)] if isinstance(value, list) else value
