"""Who waits for which lock, and who holds it, as read from the target's memory."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from hangdoc.model.link import LinkEnd
from hangdoc.model.reading import Missing, Reading

LockKind: TypeAlias = Literal[
    "mutex",
    "pi-mutex",
    "robust-mutex",
    "rwlock",
    "join",
    "condition",
    "semaphore",
    "barrier",
    "gil",
    "unknown",
]


class FutexWait(Struct, frozen=True, array_like=True):
    """One thread that waits for a futex.

    shared_key: "device:inode:offset" of a futex that processes share, "" of a private one; address: in the target.
    owner_tid: the thread that has to release it; Known(None): an object of this kind records no owner, or nobody
    holds it. owner_alive: the owner still exists in its process. owner_pid: the process the owner is of, 0 when it is
    that of the waiting thread. outsiders: processes outside the launch that have a shared futex's memory mapped, none
    of a private one; Missing in a trace that is older than this field; by_name: anybody may open that memory.
    """

    tid: int
    address: int
    shared_key: str
    kind: LockKind
    owner_tid: Reading[int | None]
    owner_alive: bool = True
    owner_pid: int = 0
    outsiders: Reading[tuple[LinkEnd, ...]] = Missing("locks", "not-taken")
    by_name: bool = False


class Gil(Struct, frozen=True, array_like=True):
    """CPython's interpreter lock. switches: how often it changed hands so far; it stands when it is never released."""

    holder_tid: int | None
    locked: bool
    switches: int
    waiting_tids: tuple[int, ...]


class PythonLock(Struct, frozen=True, array_like=True):
    """A thread that waits for a Python lock whose holder could be found.

    through: "rlock" (the lock records its owner) or "with" (the holder is inside a with block of this lock, which does
    not prove that nobody has released it since). sure: of an RLock, that this thread took it is proven; else its number
    may have been that of a thread which ended.
    holder_tid: None when the holder's thread is gone; address: of the lock object.
    """

    waiting_tid: int
    holder_tid: int | None
    address: int
    through: Literal["rlock", "with"]
    sure: bool = True


class Locks(Struct, frozen=True, tag="locks"):
    """The locks probe's reading of one process. complete: all of its threads were looked at."""

    futexes: tuple[FutexWait, ...]
    gil: Reading[Gil | None]
    python: Reading[tuple[PythonLock, ...]]
    complete: bool = True
