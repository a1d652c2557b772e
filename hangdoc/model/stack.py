"""Python stacks; frames are interned in the trace, a thread refers to its stack by number."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct


class Frame(Struct, frozen=True, array_like=True):
    """One Python frame.

    file: the path as py-spy reports it (in a redacted trace only from
    site-packages/, lib/pythonX.Y/ or a known package's directory on, otherwise a token).
    """

    function: str
    file: str
    line: int


Stack: TypeAlias = tuple[Frame, ...]
"""Innermost frame first, as py-spy prints it."""


class ThreadStack(Struct, frozen=True, array_like=True):
    """The stack of one Python thread.

    active: the OS thread was running or runnable; owns_gil: it held the interpreter lock;
    stack: index into the trace's table of stacks.
    """

    tid: int
    name: str
    active: bool
    owns_gil: bool
    stack: int


class Stacks(Struct, frozen=True, tag="stacks"):
    """The stacks probe's reading of one process: every Python thread of it at one moment."""

    threads: tuple[ThreadStack, ...]
