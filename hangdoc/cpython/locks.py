"""Finds who holds the Python lock that a thread waits for: inside `with lock:`, or as the RLock itself records.

A threading.Lock records no holder. But `with lock:` keeps the lock's bound __exit__ on the value stack of its frame
until the block is left, so the thread with such a frame is most likely the holder. Not for certain: any code that has
the lock may have released it meanwhile, and another thread may have taken it. Where that shows (a frame that names
`release` and has the lock, the method under another name, a context manager inside the block that has the lock, the
condition's own lock in Condition.wait) no holder is told. A lock taken with acquire() has no holder that could be
found. An RLock, and so a Condition, records pthread_self() of its owner, a number that is used again.
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
from hangdoc.cpython.reach import LEAST_POINTER, OBJECT_BYTES, Reach
from hangdoc.cpython.runtime import PythonThread, Runtime, python_threads
from hangdoc.glibc.descriptor import TID_OFFSET, tid_of
from hangdoc.glibc.locks import Crew
from hangdoc.memory.image import Image, UnreadableError, c_string, u32, u64, words
from hangdoc.model.locks import PythonLock

LOCK, RLOCK, METHOD = "_thread.lock", "_thread.RLock", "builtin_function_or_method"
PYTHON_METHOD, CONDITION = "method", "Condition"
RELEASES = frozenset({"release", "_release_save"})
WAITER_LOCAL = 2
"""Condition.wait(self, timeout): waiter, its own lock, is the first variable behind the arguments (3.9 to 3.13)."""
MOST_REFERENCES = 1 << 30
"""A freed object has a pointer where it had its count of references."""


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


@dataclass(frozen=True)
class Holder:
    """Who holds a lock: 0 for a thread that is gone; sure: it is proven."""

    tid: int
    sure: bool


@dataclass(frozen=True)
class Look:
    """The frames of all threads, innermost first, and the with blocks that any of them is inside of, by lock."""

    holdings: dict[int, list[Holding]]
    frames: dict[int, list[Frame]]

    @cached_property
    def releasing(self) -> tuple[Frame, ...]:
        """The frames that name `release`."""
        return tuple(
            one for frames in self.frames.values() for one in frames if not RELEASES.isdisjoint(one.code.names)
        )


class PythonLocks:
    """The Python locks of one process at one moment."""

    def __init__(self, image: Image, runtime: Runtime, crew: Crew) -> None:
        self._image, self._crew = image, crew
        self._reader = Reader(image, runtime.layout)
        self._reach = Reach(self._reader, runtime.minor)
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
                found += [PythonLock(tid, holder.tid or None, lock.address, through, holder.sure) for tid in tids]
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

    def _holder(self, lock: LockObject) -> Holder | None:
        """Return who holds a lock; None when that cannot be told."""
        try:
            if lock.kind == RLOCK:
                return self._owner(lock)
            return self._inside(lock)
        except UnreadableError:
            return None

    def _owner(self, lock: LockObject) -> Holder | None:
        """Return the owner that an RLock records, if it is the thread that took it.

        The number of a thread that ended is given to another one. The main thread's is not; any other thread has to be
        inside a with block of the lock to be the owner for sure, and has to have the lock somewhere to be it at all.
        """
        if not lock.owner or u64(self._image, lock.address + RLOCK_OWNER) != lock.owner:
            return None
        for thread in self._threads:
            if thread.ident == lock.owner:
                return self._taken_by(thread, lock)
        if self._crew.machine not in TID_OFFSET:
            return None
        # It has no Python state any more. A thread that is there all the same may be another that has got its number.
        tid = tid_of(self._image, lock.owner, self._crew.machine)
        return None if tid in self._crew.tids and tid else Holder(0, sure=True)

    def _taken_by(self, thread: PythonThread, lock: LockObject) -> Holder | None:
        frames = self._look.frames[thread.tid]
        inside = any(one.tid == thread.tid for one in self._look.holdings.get(lock.address, ()))
        if inside or thread.tid == self._crew.leader or any(self._is_inside(one, lock) for one in frames):
            return Holder(thread.tid, sure=True)
        reached = any(self._reach.from_frame(frame, lock.address) for frame in frames)
        return Holder(thread.tid, sure=False) if reached else None

    def _is_inside(self, frame: Frame, lock: LockObject) -> bool:
        """Tell whether a frame is inside a with block of the condition that has the lock."""
        return any(
            self._reader.type_name(context) == CONDITION and self._reach.from_object(context, lock.address)
            for context in self._methods(self._in_use(frame))
        )

    def _inside(self, lock: LockObject) -> Holder | None:
        """Return the one thread inside a with block of a lock; None when there is none or more than one.

        Nor is it told where any frame of the process that names `release` has this lock.
        """
        holdings = self._look.holdings.get(lock.address, ())
        tids = {one.tid for one in holdings if self._still(one, lock) and not self._may_be_released(one)}
        if len(tids) != 1 or any(self._reach.from_frame(frame, lock.address) for frame in self._look.releasing):
            return None
        return Holder(tids.pop(), sure=False)

    def _still(self, holding: Holding, lock: LockObject) -> bool:
        frame = self._reader.frame(holding.frame)
        if frame is None or holding.slot >= frame.in_use or u32(self._image, lock.semaphore):
            return False
        return u64(self._image, frame.stack + 8 * holding.slot) == holding.method

    @cached_property
    def _look(self) -> Look:
        """Look at the frames of all threads, level by level."""
        look = Look(defaultdict(list), {thread.tid: [] for thread in self._threads})
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
                for holding in self._step(tid, address, data, look.frames[tid]):
                    look.holdings[holding.lock].append(holding)
                if previous := self._reader.previous(data):
                    outer.append((tid, previous))
            level = outer
        return look

    def _step(self, tid: int, address: int, data: bytes, inner: list[Frame]) -> Iterator[Holding]:
        """Look at one frame; inner: those that it called, to which it is added."""
        try:
            frame = self._reader.frame_of(address, data)
            if frame is None:
                return
            inner.append(frame)
            slots = words(self._image.read(frame.stack, 8 * frame.in_use)) if frame.in_use else ()
            for at, lock in self._locks_in(slots, "__exit__"):
                yield Holding(tid, lock.address, frame.address, at, slots[at])
        except UnreadableError:
            return

    def _methods(self, slots: tuple[int, ...]) -> Iterator[int]:
        """Yield the objects that the bound methods of Python among others are of."""
        places = [slot for slot in slots if slot >= LEAST_POINTER and slot % 8 == 0]
        for data in self._image.read_many([(slot, OBJECT_BYTES) for slot in places]):
            fields = words(data or b"")
            if fields and self._reader.name_of_type(fields[OBJECT_TYPE // 8]) == PYTHON_METHOD:
                yield fields[METHOD_SELF // 8]

    def _may_be_released(self, holding: Holding) -> bool:
        """Tell whether code inside a with block may have released the lock."""
        inner: list[Frame] = []
        for frame in self._look.frames[holding.tid]:
            inner.append(frame)
            if self._may_release(frame, holding.lock):
                return True
            if frame.address == holding.frame:
                break
        above = (self._in_use(inner[-1])[holding.slot + 1 :], *(self._in_use(one) for one in inner[:-1]))
        return any(
            self._reach.from_context(context, holding.lock) for stack in above for context in self._methods(stack)
        )

    def _in_use(self, frame: Frame) -> tuple[int, ...]:
        return words(self._image.read(frame.stack, 8 * frame.in_use)) if frame.in_use else ()

    def _may_release(self, frame: Frame, lock: int) -> bool:
        """Tell whether a frame inside a with block may have released the lock, by its name or by another."""
        if _is_condition_wait(frame.code):
            return self._reach.from_object(u64(self._image, frame.locals), lock)
        if not frame.code.names.isdisjoint(RELEASES):
            return True
        # A method that is bound to the lock and lies in a local variable: release by another name.
        variables = self._reach.slots(frame)[: max(frame.stack - frame.locals, 0) // 8]
        return any(one.address == lock for one in self._bound(variables))

    def _bound(self, slots: tuple[int, ...]) -> Iterator[LockObject]:
        for method in RELEASES:
            yield from (lock for _, lock in self._locks_in(slots, method))


def _lock_object(address: int, kind: str, fields: tuple[int, ...]) -> LockObject | None:
    if not 0 < fields[0] < MOST_REFERENCES:
        return None
    owner = fields[RLOCK_OWNER // 8] if kind == RLOCK and fields[RLOCK_COUNT // 8] else 0
    return LockObject(address, kind, fields[LOCK_SEMAPHORE // 8], owner)


def _is_condition_wait(code: Code) -> bool:
    return code.name == "wait" and code.filename.endswith("threading.py") and "_waiters" in code.names
