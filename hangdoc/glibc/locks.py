"""Recognises the lock at the futex a thread waits for, and reads who holds it.

Layouts of glibc 2.25 to 2.43 on 64-bit machines (sysdeps/nptl/bits/thread-shared-types.h, struct_mutex.h,
struct_rwlock.h, internaltypes.h). Each is taken for what it is only when every field around it fits; a lock of no
known layout has no owner that could be told, which is Missing and not "nobody".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from hangdoc.glibc.descriptor import is_tid_of_descriptor
from hangdoc.memory.image import Image, UnreadableError
from hangdoc.model.locks import LockKind
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.procfs.syscalls import FutexCall

BEFORE_BYTES, AFTER_BYTES = 48, 48
"""What is read around a futex: a condition's word lies 44 bytes into it, a mutex has 40 bytes."""

MOST_TID = 1 << 22
"""PID_MAX_LIMIT (include/linux/threads.h)."""
TID_MASK, OWNER_DIED, WAITERS = 0x3FFFFFFF, 0x40000000, 0x80000000
"""FUTEX_TID_MASK, FUTEX_OWNER_DIED, FUTEX_WAITERS (include/uapi/linux/futex.h)."""
ROBUST, PI, SHARED, TYPE_MASK, KINDS = 16, 32, 128, 3, 0x3B3
"""PTHREAD_MUTEX_ROBUST_NORMAL_NP and so on (nptl/pthreadP.h); 256 and 512 say whether a lock may be elided. 64, a
priority ceiling, makes another use of the word."""
MOST_SHARERS = 10_000
"""Waiters and users of a lock that other processes share: beyond that it is no lock. Arbitrary."""
PRIVATE_WORD, SHARED_WORD = 0, 128
"""LLL_PRIVATE, LLL_SHARED as sem_t and pthread_barrier_t record them (sysdeps/nptl/lowlevellock-futex.h)."""
CONDITION_WORDS = ((40, 36), (44, 36), (32, 28), (36, 28))
"""Offsets of a condition's two words to wait for and of its count of waiters: before glibc 2.41, and since then."""
OLD_WORDS = (40, 44)


@dataclass(frozen=True)
class Crew:
    """The threads of the process that waits, in the numbers that it knows itself by; leader: its main thread."""

    tids: frozenset[int]
    machine: str
    leader: int = 0

    def most(self, *, private: bool) -> int:
        """Return how many threads may use a lock."""
        return len(self.tids) + 1 if private else MOST_SHARERS


@dataclass(frozen=True)
class Owned:
    """What lock it is and who holds it; the owner may be gone, and that of a shared lock in another process."""

    kind: LockKind
    owner: Reading[int | None]


Rule: TypeAlias = "Callable[[Around, FutexCall, Crew], Owned | None]"


class Around:
    """The bytes around a futex; those before it may be unmapped."""

    def __init__(self, image: Image, address: int, data: bytes | None = None) -> None:
        self.image, self.address = image, address
        self._before = BEFORE_BYTES
        if data is None:
            try:
                data = image.read(address - BEFORE_BYTES, BEFORE_BYTES + AFTER_BYTES)
            except UnreadableError:
                data, self._before = image.read(address, 4), 0
        self._data = data

    def unpack(self, layout: str, offset: int) -> tuple[int, ...]:
        """Read a structure that lies so far from the futex; what the neighbouring bytes lack is read anew."""
        at, size = self._before + offset, struct.calcsize(layout)
        if at >= 0 and at + size <= len(self._data):
            return struct.unpack_from(layout, self._data, at)
        return struct.unpack(layout, self.image.read(self.address + offset, size))


def _rules(call: FutexCall) -> tuple[Rule, ...]:
    """Return the locks that may be waited for like this, by the arguments alone."""
    if call.locks_pi:
        return (_pi_mutex,)
    if call.value & WAITERS:
        return (_robust_mutex,)
    if call.bitset and not call.value:
        return (_semaphore, _condition)
    return (_mutex, _joined, _rwlock, _condition, _barrier)


def recognise(around: Around, call: FutexCall, crew: Crew) -> Owned:
    """Return what lock lies at a futex and who holds it."""
    for rule in _rules(call):
        try:
            found = rule(around, call, crew)
        except UnreadableError:
            continue
        if found is not None:
            return found
    return Owned("unknown", Missing("locks", "unsupported", "no lock of a known layout lies at this address"))


NOBODY: Known[int | None] = Known(None)


def _mutex_fields(around: Around) -> tuple[int, ...]:
    """word, count, owner, users, kind, spins and elision, list (struct __pthread_mutex_s)."""
    return around.unpack("<IIiIIIQQ", 0)


def _pi_mutex(around: Around, call: FutexCall, crew: Crew) -> Owned | None:
    """A mutex that the kernel hands on: the word is the owner's tid. Requires that the owner's own field agrees."""
    word, _, owner, users, kind = _mutex_fields(around)[:5]
    held = word & TID_MASK
    if not kind & PI or kind & ~KINDS or not held or not 1 <= users <= crew.most(private=call.private):
        return None
    return Owned("pi-mutex", Known(held)) if owner == held else None


def _robust_mutex(around: Around, call: FutexCall, crew: Crew) -> Owned | None:
    """A mutex whose next owner learns of a death: the word is the owner's tid and a bit that says somebody waits.

    glibc waits for it as if processes shared it even where they do not.
    """
    word, _, owner, users, kind = _mutex_fields(around)[:5]
    if not kind & ROBUST or kind & (PI | ~KINDS) or word != call.value or word & OWNER_DIED:
        return None
    plausible = word & TID_MASK == owner and 1 <= users <= crew.most(private=not kind & SHARED)
    return Owned("robust-mutex", Known(owner)) if plausible else None


def _mutex(around: Around, call: FutexCall, crew: Crew) -> Owned | None:
    """A normal, recursive, error-checking or adaptive mutex, std::mutex too: word 2 says that somebody waits.

    Without a timeout glibc waits for it by FUTEX_WAIT (__lll_lock_wait); locks of Rust by FUTEX_WAIT_BITSET.
    """
    word, count, owner, users, kind, spins, following, previous = _mutex_fields(around)
    if call.value != 2 or word != 2 or not 0 < owner <= MOST_TID or (call.bitset and not call.timed):
        return None
    if kind & (ROBUST | PI | ~KINDS) or bool(kind & SHARED) == call.private or following or previous:
        return None
    recursive = kind & TYPE_MASK == 1
    adaptive = kind & TYPE_MASK == 3
    if bool(count) != recursive or (spins and not adaptive) or not 1 <= users <= crew.most(private=call.private):
        return None
    return Owned("mutex", Known(owner))


def _joined(around: Around, call: FutexCall, crew: Crew) -> Owned | None:
    """pthread_join: the word is the tid in the descriptor of the thread to be joined, which the kernel clears."""
    if call.private or call.value not in crew.tids:
        return None
    if around.unpack("<I", 0) != (call.value,) or not is_tid_of_descriptor(around.image, call.address):
        return None
    return Owned("join", Known(call.value))


def _rwlock(around: Around, call: FutexCall, crew: Crew) -> Owned | None:
    """A lock for readers and writers; only a writer's tid is recorded.

    Readers wait for the word at 8, writers for that at 12 or, when they are next, at 8 (nptl/pthread_rwlock_common.c).
    """
    for offset in (8, 12):
        if call.value not in ({2, 3} if offset == 8 else {3}):
            continue
        readers, _, phase, queue, pad3, pad4, writer, shared = around.unpack("<IIIIIIii", -offset)
        word = phase if offset == 8 else queue
        if word != call.value or phase > 3 or queue > 3 or pad3 or pad4 or bool(shared) == call.private:
            continue
        if readers & 3 == 3 and phase & 1 and queue & 1 and writer in crew.tids and call.private:
            return Owned("rwlock", Known(writer))
        if readers & 3 == 3 and phase & 1 and queue & 1 and 0 < writer <= MOST_TID and not call.private:
            return Owned("rwlock", Known(writer))
        if not readers & 1 and 1 <= readers >> 3 <= crew.most(private=call.private) and not phase & 1 and not writer:
            return Owned("rwlock", NOBODY)
    return None


def _semaphore(around: Around, call: FutexCall, crew: Crew) -> Owned | None:
    """sem_t (struct new_sem): value 0, how many wait, whether processes share it. Anybody may post."""
    value, waiters, shared = around.unpack("<III", 0)
    sharing = PRIVATE_WORD if call.private else SHARED_WORD
    if (
        not call.bitset
        or call.value
        or value
        or shared != sharing
        or not 1 <= waiters <= crew.most(private=call.private)
    ):
        return None
    return Owned("semaphore", NOBODY)


def _condition(around: Around, call: FutexCall, crew: Crew) -> Owned | None:
    """pthread_cond_t: counts of waiters so far, and how many there are now. Anybody may signal."""
    return Owned("condition", NOBODY) if any(conditions_at(around, call, crew)) else None


def conditions_at(around: Around, call: FutexCall, crew: Crew) -> Iterator[int]:
    """Yield how far before the futex a condition may begin: that depends on the version and on which word it is.

    Before 2.41 there are counts of references for each of both words (__g_refs, at 16).
    """
    most = crew.most(private=call.private)
    for offset, waiters_at in CONDITION_WORDS:
        try:
            sequence, first, *references = around.unpack("<QQII", -offset)
            waiters = around.unpack("<I", waiters_at - offset)[0] >> 3
        except UnreadableError:
            continue
        old = offset in OLD_WORDS
        if old and not 1 <= references[OLD_WORDS.index(offset)] >> 1 <= waiters:
            continue
        if (call.bitset or (old and not call.value)) and 1 <= waiters <= most and 1 <= sequence >> 1 >= first >> 1:
            yield offset


def _barrier(around: Around, call: FutexCall, crew: Crew) -> Owned | None:
    """pthread_barrier_t: arrived so far, first number of this round, how many have to come. Who is late is unknown."""
    arrived, current, count, shared, left = around.unpack("<IIIiI", -4)
    sharing = PRIVATE_WORD if call.private else SHARED_WORD
    if call.bitset or current != call.value or shared != sharing or not 2 <= count <= MOST_SHARERS:
        return None
    most = min(count - 1, crew.most(private=call.private))
    if not current < arrived <= current + most or left > arrived or current % count:
        return None
    return Owned("barrier", NOBODY)
