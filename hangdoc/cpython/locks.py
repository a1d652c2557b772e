"""Finds who holds the Python lock that a thread waits for: inside `with lock:`, or as the RLock itself records.

A threading.Lock records no holder. But `with lock:` keeps the lock's bound __exit__ on the value stack of its frame
until the block is left, so the thread with such a frame is the holder. That fails where the block releases the lock
itself: a frame in it that names `release` is therefore no proof, and Condition.wait is none for the condition's own
lock. A lock taken with acquire() has no holder that could be found. An RLock, and so a Condition, records
pthread_self() of its owner.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from hangdoc.cpython.frames import MOST_FRAMES, Code, Frame, Reader
from hangdoc.cpython.layouts import (
    LOCK_SEMAPHORE,
    METHOD_DEFINITION,
    METHOD_SELF,
    OBJECT_TYPE,
    RLOCK_COUNT,
    RLOCK_OWNER,
)
from hangdoc.cpython.runtime import PythonThread, Runtime, python_threads
from hangdoc.glibc.descriptor import TID_OFFSET, tid_of
from hangdoc.glibc.locks import Crew
from hangdoc.memory.image import Image, UnreadableError, c_string, u32, u64, words
from hangdoc.model.locks import PythonLock

LOCK, RLOCK, METHOD = "_thread.lock", "_thread.RLock", "builtin_function_or_method"
RELEASES = frozenset({"release", "_release_save"})
WAITER_LOCAL = 2
"""Condition.wait(self, timeout): waiter, its own lock, is the first variable behind the arguments (3.9 to 3.13)."""
OBJECT_BYTES = 40
"""Enough of a lock, an RLock and a bound built-in method."""
MOST_REFERENCES = 1 << 30
"""A freed object has a pointer where it had its count of references."""
LEAST_POINTER = 1 << 16


@dataclass(frozen=True)
class LockObject:
    """A Python lock. owner: ident of an RLock's owner, 0 when it has none."""

    address: int
    kind: str
    semaphore: int
    owner: int


@dataclass(frozen=True)
class Holding:
    """A frame inside a with block of a lock. slot: where the lock's __exit__ lies; method: what lies there."""

    tid: int
    lock: int
    frame: int
    slot: int
    method: int


class PythonLocks:
    """The Python locks of one process at one moment."""

    def __init__(self, image: Image, runtime: Runtime, crew: Crew) -> None:
        self._image, self._crew = image, crew
        self._reader = Reader(image, runtime.layout)
        self._threads = python_threads(image, runtime, crew)
        self._by_tid = {thread.tid: thread for thread in self._threads}

    def held(self, waits: Mapping[int, int]) -> tuple[PythonLock, ...]:
        """Return whose holder can be told, of the threads that wait for a futex; waits: tid -> its address."""
        waiters = defaultdict(list)
        for tid in self._not_by_turns({tid: address for tid, address in waits.items() if tid in self._by_tid}):
            waiters[waits[tid]].append(tid)
        found = []
        for address, tids in waiters.items():
            lock = self._lock_waited_for(self._by_tid[tids[0]], address)
            holder = self._holder(lock) if lock else None
            if lock and holder is not None:
                through: Literal["rlock", "with"] = "rlock" if lock.kind == RLOCK else "with"
                found += [PythonLock(tid, holder or None, lock.address, through) for tid in tids]
        return tuple(found)

    def _not_by_turns(self, waits: Mapping[int, int]) -> list[int]:
        """Leave out the threads that wait in Condition.wait for a notify: nobody holds the lock each has for that.

        A pool has thousands of them, so they are read all at once.
        """
        tids = list(waits)
        frames = self._reader.innermost([self._by_tid[tid].frame for tid in tids])
        codes = {frame[1] for frame in frames if frame}
        pausing = {id(code) for code in codes if _is_condition_wait(code)}
        turns = [(tid, one[0]) for tid, one in zip(tids, frames, strict=True) if one and id(one[1]) in pausing]
        waiters = self._image.read_many([(local + 8 * WAITER_LOCAL, 8) for _, local in turns])
        locks = [int.from_bytes(one or b"", "little") for one in waiters]
        semaphores = self._image.read_many([(lock + LOCK_SEMAPHORE, 8) for lock in locks])
        own = {tid for (tid, _), one in zip(turns, semaphores, strict=True) if one == waits[tid].to_bytes(8, "little")}
        return [tid for tid in tids if tid not in own]

    def _lock_waited_for(self, thread: PythonThread, semaphore: int) -> LockObject | None:
        """Return the lock object whose semaphore a thread waits for: its innermost frame has it somewhere."""
        try:
            frame = next(self._reader.frames(thread.frame), None)
            if frame is None:
                return None
            size = frame.stack - frame.locals + 8 * frame.code.stack_size
            slots = words(self._image.read(frame.locals, size)) if size else ()
        except UnreadableError:
            return None
        for _, lock in self._locks_in(slots):
            if lock.semaphore == semaphore:
                return lock
        return None

    def _locks_in(self, slots: tuple[int, ...], method: str = "") -> Iterator[tuple[int, LockObject]]:
        """Yield the locks among objects and their bound methods, with the place; method: that bound method alone."""
        places = [at for at, slot in enumerate(slots) if slot >= LEAST_POINTER and slot % 8 == 0]
        objects = self._image.read_many([(slots[at], OBJECT_BYTES) for at in places])
        for at, data in zip(places, objects, strict=True):
            lock = self._lock_or_method(slots[at], data, method) if data else None
            if lock is not None:
                yield at, lock

    def _lock_or_method(self, address: int, data: bytes, method: str) -> LockObject | None:
        fields = words(data)
        kind = self._reader.name_of_type(fields[OBJECT_TYPE // 8])
        if kind in {LOCK, RLOCK}:
            return None if method else _lock_object(address, kind, fields)
        if kind != METHOD:
            return None
        try:
            definition, itself = fields[METHOD_DEFINITION // 8], fields[METHOD_SELF // 8]
            if method and c_string(self._image, u64(self._image, definition)) != method:
                return None
            data = self._image.read(itself, OBJECT_BYTES)
        except UnreadableError:
            return None
        fields = words(data)
        kind = self._reader.name_of_type(fields[OBJECT_TYPE // 8])
        return _lock_object(itself, kind, fields) if kind in {LOCK, RLOCK} else None

    def _holder(self, lock: LockObject) -> int | None:
        """Return who holds a lock: 0 for a thread that is gone, None when that cannot be told."""
        try:
            if lock.kind == RLOCK:
                return self._owner(lock)
            return self._inside(lock)
        except UnreadableError:
            return None

    def _owner(self, lock: LockObject) -> int | None:
        if not lock.owner or u64(self._image, lock.address + RLOCK_OWNER) != lock.owner:
            return None
        for thread in self._threads:
            if thread.ident == lock.owner:
                return thread.tid
        if self._crew.machine not in TID_OFFSET:
            return None
        # It has no Python state any more, but the thread may be there, or another that has got its number.
        tid = tid_of(self._image, lock.owner, self._crew.machine)
        return tid if tid in self._crew.tids and tid else 0

    def _inside(self, lock: LockObject) -> int | None:
        """Return the one thread inside a with block of a lock; None when there is none or more than one."""
        holdings = [one for one in self._holdings.get(lock.address, ()) if self._still(one, lock)]
        tids = {one.tid for one in holdings}
        return tids.pop() if len(tids) == 1 else None

    def _still(self, holding: Holding, lock: LockObject) -> bool:
        frame = self._reader.frame(holding.frame)
        if frame is None or holding.slot >= frame.in_use or u32(self._image, lock.semaphore):
            return False
        return u64(self._image, frame.stack + 8 * holding.slot) == holding.method

    @cached_property
    def _holdings(self) -> Mapping[int, list[Holding]]:
        """All with blocks of Locks that any thread is inside of, by lock; the frames of all threads, level by level."""
        found = defaultdict(list)
        inner: dict[int, list[Frame]] = {thread.tid: [] for thread in self._threads}
        level = [(thread.tid, thread.frame) for thread in self._threads if thread.frame]
        size = self._reader.layout.frame.header_bytes
        for _ in range(MOST_FRAMES):
            if not level:
                break
            headers = self._image.read_many([(frame, size) for _, frame in level])
            outer = []
            for (tid, address), data in zip(level, headers, strict=True):
                if data is None:
                    continue
                for holding in self._step(tid, address, data, inner[tid]):
                    found[holding.lock].append(holding)
                if previous := self._reader.previous(data):
                    outer.append((tid, previous))
            level = outer
        return found

    def _step(self, tid: int, address: int, data: bytes, inner: list[Frame]) -> Iterator[Holding]:
        """Look at one frame; inner: those that it called, to which it is added."""
        try:
            frame = self._reader.frame_of(address, data)
            if frame is None:
                return
            inner.append(frame)
            slots = words(self._image.read(frame.stack, 8 * frame.in_use)) if frame.in_use else ()
            for at, lock in self._locks_in(slots, "__exit__") if slots else ():
                if lock.kind == LOCK and not any(self._may_release(one, lock) for one in inner):
                    yield Holding(tid, lock.address, frame.address, at, slots[at])
        except UnreadableError:
            return

    def _may_release(self, frame: Frame, lock: LockObject) -> bool:
        """Tell whether a frame inside a with block may have released the lock."""
        if _is_condition_wait(frame.code):
            return self._is_lock_of(u64(self._image, frame.locals), lock)
        return not frame.code.names.isdisjoint(RELEASES)

    def _is_lock_of(self, condition: int, lock: LockObject) -> bool:
        """Tell whether a condition has this lock among its attributes."""
        return any(lock.address in words(table) for table in self._reader.attributes(condition))


def _lock_object(address: int, kind: str, fields: tuple[int, ...]) -> LockObject | None:
    if not 0 < fields[0] < MOST_REFERENCES:
        return None
    owner = fields[RLOCK_OWNER // 8] if kind == RLOCK and fields[RLOCK_COUNT // 8] else 0
    return LockObject(address, kind, fields[LOCK_SEMAPHORE // 8], owner)


def _is_condition_wait(code: Code) -> bool:
    return code.name == "wait" and code.filename.endswith("threading.py") and "_waiters" in code.names
