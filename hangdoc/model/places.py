"""Where in its bytecode a running Python thread is, many times within milliseconds."""

from __future__ import annotations

from msgspec import Struct


class ThreadPlaces(Struct, frozen=True, array_like=True):
    """The innermost frame of one thread, looked at `looks` times, at moments that no loop is in step with.

    same_frame: in how many looks it was the frame of the first one, which has this function; places: at how many
    different instructions of it; turns: how often an instruction lay before that of the look before, so that the thread
    had gone back within the frame; endless: all of them were in a loop that is nothing but a jump back (`while True:
    pass`), which no instruction of its own leaves.
    """

    tid: int
    function: str
    file: str
    looks: int
    same_frame: int
    places: int
    turns: int
    endless: bool = False


class Places(Struct, frozen=True, tag="places"):
    """The places probe's reading of one process: those of its Python threads that ran."""

    threads: tuple[ThreadPlaces, ...]
