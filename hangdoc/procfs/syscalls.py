"""System-call numbers by machine, and what a wait in one of them means."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from hangdoc.model.thread import SystemCall

Call: TypeAlias = Literal[
    "read", "write", "open", "futex", "poll", "sleep", "wait-child", "file-lock", "restart", "other"
]

# From the kernel's own tables: arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
_X86_64: dict[int, Call] = {
    **dict.fromkeys((0, 17, 19, 45, 47, 299), "read"),
    **dict.fromkeys((1, 18, 20, 44, 46), "write"),
    **dict.fromkeys((2, 257, 437), "open"),
    **dict.fromkeys((202, 449, 455), "futex"),
    **dict.fromkeys((7, 23, 232, 270, 271, 281), "poll"),
    **dict.fromkeys((35, 230), "sleep"),
    **dict.fromkeys((61, 247), "wait-child"),
    **dict.fromkeys((72, 73), "file-lock"),
    219: "restart",
}
_AARCH64: dict[int, Call] = {
    **dict.fromkeys((63, 65, 67, 207, 212, 243), "read"),
    **dict.fromkeys((64, 66, 68, 206, 211), "write"),
    **dict.fromkeys((56, 437), "open"),
    **dict.fromkeys((98, 449, 455), "futex"),
    **dict.fromkeys((22, 72, 73), "poll"),
    **dict.fromkeys((101, 115), "sleep"),
    **dict.fromkeys((95, 260), "wait-child"),
    **dict.fromkeys((25, 32), "file-lock"),
    128: "restart",
}
_BY_MACHINE = {"x86_64": _X86_64, "aarch64": _AARCH64}

_FUTEX_NUMBER = {"x86_64": 202, "aarch64": 98}
_FUTEX_WAIT_NUMBER = 455
"""futex_wait(2), the same everywhere: address, value, mask, flags, timeout, clock."""
_FUTEX_COMMAND_MASK = 127
_FUTEX_PRIVATE = 128
_FUTEX_WAITS = frozenset({0, 6, 9, 11, 13})
"""FUTEX_WAIT, FUTEX_LOCK_PI, FUTEX_WAIT_BITSET, FUTEX_WAIT_REQUEUE_PI, FUTEX_LOCK_PI2 (include/uapi/linux/futex.h)."""
_LOCKS_PI = frozenset({6, 13})
_WAIT_BITSET = 9


class FutexCall(NamedTuple):
    """A thread's wait for a futex. command: FUTEX_WAIT and so on; value: what the word had to be."""

    address: int
    command: int
    value: int
    private: bool
    timed: bool

    @property
    def locks_pi(self) -> bool:
        """Tell whether the kernel itself hands the lock on (priority inheritance)."""
        return self.command in _LOCKS_PI

    @property
    def bitset(self) -> bool:
        """Tell whether it is FUTEX_WAIT_BITSET: glibc's way to wait with a point in time as timeout, or with none."""
        return self.command == _WAIT_BITSET


def futex_call(call: SystemCall, machine: str) -> FutexCall | None:
    """Read the arguments of a wait for one futex; None for any other call.

    >>> futex_call(SystemCall(202, (0x7F00, 0x80, 2, 0, 0, 0)), "x86_64")
    FutexCall(address=32512, command=0, value=2, private=True, timed=False)
    >>> futex_call(SystemCall(202, (0x7F00, 0x81, 1, 0, 0, 0)), "x86_64") is None
    True
    """
    if len(call.args) < 5:
        return None
    address, second, third, fourth, fifth = call.args[:5]
    if call.number == _FUTEX_WAIT_NUMBER and machine in _FUTEX_NUMBER:
        return FutexCall(address, _WAIT_BITSET, second & 0xFFFFFFFF, bool(fourth & _FUTEX_PRIVATE), fifth != 0)
    command = second & _FUTEX_COMMAND_MASK
    if call.number != _FUTEX_NUMBER.get(machine) or command not in _FUTEX_WAITS:
        return None
    private = bool(second & _FUTEX_PRIVATE)
    return FutexCall(address, command, third & 0xFFFFFFFF, private, fourth != 0)


def call_of(number: int, machine: str) -> Call:
    """Return what kind of wait a system call is; "other" for one that no rule needs, or an unknown machine."""
    return _BY_MACHINE.get(machine, {}).get(number, "other")


def is_untimed_futex_wait(call: SystemCall, machine: str) -> bool:
    """Tell whether a call is futex(2) waiting without a timeout: only another thread can end it.

    Arguments: address, operation, value, timeout (0: none).

    >>> is_untimed_futex_wait(SystemCall(202, (0x7F00, 0x189, 0, 0, 0, 0xFFFFFFFF)), "x86_64")
    True
    >>> is_untimed_futex_wait(SystemCall(202, (0x7F00, 0x189, 0, 0x7FFE, 0, 0xFFFFFFFF)), "x86_64")
    False
    """
    if call.number != _FUTEX_NUMBER.get(machine) or len(call.args) < 4:
        return False
    return call.args[1] & _FUTEX_COMMAND_MASK in _FUTEX_WAITS and call.args[3] == 0


def is_private_futex(call: SystemCall, machine: str) -> bool:
    """Tell whether a futex can be woken by threads of its own process only (FUTEX_PRIVATE_FLAG).

    glibc sets the flag for locks, conditions and semaphores of one process, and leaves it out for those that processes
    share (multiprocessing's) and for a join of a thread, which the kernel itself ends.

    >>> is_private_futex(SystemCall(202, (0x7F00, 0x189, 0, 0)), "x86_64")
    True
    """
    return call.number == _FUTEX_NUMBER.get(machine) and len(call.args) > 1 and bool(call.args[1] & _FUTEX_PRIVATE)


_CLOCK_NANOSLEEP = {"x86_64": 230, "aarch64": 115}
_CLOCK_MONOTONIC = 1
_TIMER_ABSTIME = 1


def sleeps_until(call: SystemCall, machine: str) -> int | None:
    """Return where in the target the moment lies until which it sleeps, or None when it does not sleep so.

    clock_nanosleep(clock, flags, request, remaining) with TIMER_ABSTIME on CLOCK_MONOTONIC: request points at a
    timespec, two numbers of 8 bytes (include/uapi/linux/time.h).

    >>> hex(sleeps_until(SystemCall(230, (1, 1, 0x7FFD00, 0, 0, 0)), "x86_64"))
    '0x7ffd00'
    """
    if call.number != _CLOCK_NANOSLEEP.get(machine) or call.args[:2] != (_CLOCK_MONOTONIC, _TIMER_ABSTIME):
        return None
    return call.args[2]
