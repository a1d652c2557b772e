"""Finds CPython's interpreter lock from a thread that waits for it, without any symbol.

struct _gil_runtime_state (Include/internal/pycore_gil.h), the same in 3.9 to 3.14: interval in microseconds at 0,
last_holder (a PyThreadState) at 8, locked (int) at 16, switch_number at 24, cond (pthread_cond_t) at 32. Its waiters
wait for cond with a timeout of one interval.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise

from hangdoc.glibc.descriptor import TID_OFFSET, tid_of
from hangdoc.glibc.locks import Around, Crew, conditions_at
from hangdoc.memory.image import Image, UnreadableError, words
from hangdoc.procfs.syscalls import FutexCall

CONDITION_OFFSET = 32
STATE_BYTES = 32
THREAD_STATE_BYTES = 512
"""thread_id and native_thread_id lie at 136 to 184 in 3.9 to 3.14."""
MOST_INTERVAL_US = 10_000_000
"""sys.setswitchinterval takes any number; 5,000 is the default, ten seconds is arbitrary."""
ATTEMPTS = 4
"""Readings until two agree; arbitrary."""
LEAST_POINTER = 1 << 16
"""mmap_min_addr: nothing is mapped below."""


@dataclass(frozen=True)
class GilState:
    """The lock at one moment. holder_tid: in the target's own numbers, None while nobody holds it."""

    address: int
    interval_us: int
    holder_tid: int | None
    locked: bool
    switches: int


def gil_waited_for(around: Around, call: FutexCall, crew: Crew) -> GilState | None:
    """Return the interpreter lock that a thread waits for; None when it waits for something else."""
    if not call.timed or not call.private:
        return None
    for offset in conditions_at(around, call, crew):
        found = gil_at(around.image, call.address - offset - CONDITION_OFFSET, crew)
        if found is not None:
            return found
    return None


def gil_at(image: Image, address: int, crew: Crew) -> GilState | None:
    """Read the interpreter lock at an address; None when there is none whose holder is a thread of this crew."""
    try:
        before = image.read(address, STATE_BYTES)
        for _ in range(ATTEMPTS):
            found = _state(image, address, before, crew)
            after = image.read(address, STATE_BYTES)
            if after == before:
                return found
            before = after  # it changed hands meanwhile, which it does hundreds of times a second
    except UnreadableError:
        return None
    return None


def _state(image: Image, address: int, data: bytes, crew: Crew) -> GilState | None:
    interval, last_holder, locked, padding, switches = struct.unpack("<QQiIQ", data)
    if not 1 <= interval <= MOST_INTERVAL_US or locked not in {0, 1} or padding or last_holder < LEAST_POINTER:
        return None
    if not locked:
        return GilState(address, interval, None, locked=False, switches=switches)
    holder = holder_of(image, last_holder, crew)
    return None if holder is None else GilState(address, interval, holder, locked=True, switches=switches)


def holder_of(image: Image, thread_state: int, crew: Crew) -> int | None:
    """Return the tid of a PyThreadState.

    It records pthread_self() (thread_id) and, since 3.11, right behind it the kernel's number (native_thread_id).
    Before that the number stands in the thread's descriptor. Where descriptors are known both have to agree.
    """
    found = words(image.read(thread_state, THREAD_STATE_BYTES))
    for ident, native in pairwise(found):
        if ident < LEAST_POINTER or ident % 16:
            continue
        if crew.machine not in TID_OFFSET:
            if native in crew.tids:
                return native
        elif (tid := tid_of(image, ident, crew.machine)) in crew.tids:
            return tid
    return None
