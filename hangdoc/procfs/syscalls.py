"""System-call numbers by machine, and what a wait in one of them means."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from hangdoc.model.thread import SystemCall

Call: TypeAlias = Literal[
    "read", "write", "open", "futex", "poll", "sleep", "wait-child", "file-lock", "restart", "other"
]

Awaits: TypeAlias = Literal[
    "data", "room", "connection", "poll", "select", "epoll", "child", "child-by-id", "flock", "fcntl"
]
"""data, room: argument 0 is a descriptor to read from or write to; the rest as the call's own manual page says."""

# From the kernel's own tables: arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
_AWAITS_X86_64: dict[int, Awaits] = {
    **dict.fromkeys((0, 17, 19, 45, 47, 295, 299, 327), "data"),
    **dict.fromkeys((1, 18, 20, 44, 46, 296, 307, 328), "room"),
    **dict.fromkeys((43, 288), "connection"),
    **dict.fromkeys((7, 271), "poll"),
    **dict.fromkeys((23, 270), "select"),
    **dict.fromkeys((232, 281, 441), "epoll"),
    61: "child",
    247: "child-by-id",
    73: "flock",
    72: "fcntl",
}
_AWAITS_AARCH64: dict[int, Awaits] = {
    **dict.fromkeys((63, 65, 67, 69, 207, 212, 243, 286), "data"),
    **dict.fromkeys((64, 66, 68, 70, 206, 211, 269, 287), "room"),
    **dict.fromkeys((202, 242), "connection"),
    73: "poll",
    72: "select",
    **dict.fromkeys((22, 441), "epoll"),
    260: "child",
    95: "child-by-id",
    32: "flock",
    25: "fcntl",
}
_AWAITS = {"x86_64": _AWAITS_X86_64, "aarch64": _AWAITS_AARCH64}
_CALL_OF: dict[Awaits, Call] = {
    **dict.fromkeys(("poll", "select", "epoll"), "poll"),
    **dict.fromkeys(("child", "child-by-id"), "wait-child"),
    **dict.fromkeys(("flock", "fcntl"), "file-lock"),
    "data": "read",
    "room": "write",
    "connection": "other",
}
_X86_64: dict[int, Call] = {
    **{number: _CALL_OF[kind] for number, kind in _AWAITS_X86_64.items()},
    **dict.fromkeys((2, 257, 437), "open"),
    **dict.fromkeys((202, 449, 455), "futex"),
    **dict.fromkeys((35, 230), "sleep"),
    219: "restart",
}
_AARCH64: dict[int, Call] = {
    **{number: _CALL_OF[kind] for number, kind in _AWAITS_AARCH64.items()},
    **dict.fromkeys((56, 437), "open"),
    **dict.fromkeys((98, 449, 455), "futex"),
    **dict.fromkeys((101, 115), "sleep"),
    128: "restart",
}
_BY_MACHINE = {"x86_64": _X86_64, "aarch64": _AARCH64}

F_SETLKW, F_OFD_SETLKW = 7, 38
"""The two commands of fcntl that wait (include/uapi/asm-generic/fcntl.h)."""

P_ALL, P_PID, P_PGID, P_PIDFD = 0, 1, 2, 3
"""Kinds of identifier that waitid takes (include/uapi/linux/wait.h)."""

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


def awaits(number: int, machine: str) -> Awaits | None:
    """Return what a system call waits for; None for one that waits for nobody who could be found from here.

    >>> awaits(61, "x86_64"), awaits(202, "x86_64"), awaits(61, "riscv64")
    ('child', None, None)
    """
    return _AWAITS.get(machine, {}).get(number)


_TIMEOUT_ARGUMENT: dict[Awaits, int] = {"poll": 2, "select": 4, "epoll": 3}
"""Where the timeout of a wait for a set of descriptors is passed."""
_IN_MILLISECONDS = {"x86_64": frozenset({7, 232, 281}), "aarch64": frozenset({22})}
"""Of those the ones that take it as an int of milliseconds, negative for none: poll, epoll_wait, epoll_pwait. The
others take a pointer, NULL for none (poll(2), select(2), epoll_wait(2))."""


def ends_by_itself(call: SystemCall, machine: str) -> bool:
    """Tell whether a wait has a timeout among its arguments. A timeout of the socket itself (SO_RCVTIMEO) is in none.

    >>> ends_by_itself(SystemCall(7, (0x7F00, 1, 0xFFFFFFFF, 0, 0, 0)), "x86_64")
    False
    >>> ends_by_itself(SystemCall(7, (0x7F00, 1, 30_000, 0, 0, 0)), "x86_64")
    True
    >>> ends_by_itself(SystemCall(271, (0x7F00, 1, 0x7FFD, 0, 0, 0)), "x86_64")
    True
    >>> ends_by_itself(SystemCall(202, (0x7F00, 0x80, 2, 0x7FFD, 0, 0)), "x86_64")
    True
    """
    futex = futex_call(call, machine)
    if futex is not None:
        return futex.timed
    kind = awaits(call.number, machine)
    if kind not in _TIMEOUT_ARGUMENT or len(call.args) <= _TIMEOUT_ARGUMENT[kind]:
        return False
    timeout = call.args[_TIMEOUT_ARGUMENT[kind]]
    return as_int(timeout) >= 0 if call.number in _IN_MILLISECONDS[machine] else timeout != 0


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


def as_int(argument: int) -> int:
    """Read an argument of 64 bits as the signed int of 32 bits that the call takes.

    >>> as_int(0xFFFFFFFF), as_int(0xFFFFFFFFFFFFFFFF), as_int(7)
    (-1, -1, 7)
    """
    return (argument & 0xFFFFFFFF ^ 0x80000000) - 0x80000000
