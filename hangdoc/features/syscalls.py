"""System-call numbers by machine, and what a wait in one of them means."""

from __future__ import annotations

from typing import Literal, TypeAlias

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
_FUTEX_COMMAND_MASK = 127
_FUTEX_PRIVATE = 128
_FUTEX_WAITS = frozenset({0, 6, 9, 13})
"""FUTEX_WAIT, FUTEX_LOCK_PI, FUTEX_WAIT_BITSET, FUTEX_LOCK_PI2 (include/uapi/linux/futex.h)."""


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
