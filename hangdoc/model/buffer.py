"""Text that a process has printed and that has not left it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from hangdoc.model.reading import Missing, Reading


class HiddenText(Struct, frozen=True, kw_only=True):
    """What one output stream of a process holds back.

    stream: "stdout", "stderr" (CPython's), "c-stdout", "c-stderr" (the C library's) or "file"; fd: its descriptor;
    size_bytes: 0 when all has been written; tail: its last lines, at most 2,000 characters (never recorded).
    replaced_by: the type of the object that stands in sys in the stream's place (a Tee): what that one keeps itself
    is not known; "" when nothing does.
    """

    stream: Literal["stdout", "stderr", "c-stdout", "c-stderr", "file"]
    fd: int
    size_bytes: int
    tail: str = ""
    replaced_by: str = ""


class Buffers(Struct, frozen=True, tag="buffers"):
    """The buffers probe's reading of one process; each library's own failure is Missing in it.

    python, c: streams that are in use, one for each buffer; empty where there is none (a process without Python).
    unsearched: why it is not known whether the program has opened the same descriptors a second time; None where it
    was searched, or was not asked (an older trace).
    """

    python: Reading[tuple[HiddenText, ...]]
    c: Reading[tuple[HiddenText, ...]]
    unsearched: Missing | None = None
