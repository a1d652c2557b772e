"""Which system calls wait for somebody else, and for whom their arguments ask."""

from __future__ import annotations

from typing import Literal, TypeAlias

Awaits: TypeAlias = Literal[
    "data", "room", "connection", "poll", "select", "epoll", "child", "child-by-id", "flock", "fcntl"
]
"""data, room: argument 0 is a descriptor to read from or write to; the rest as the call's own manual page says."""

# From the kernel's own tables: arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
_X86_64: dict[int, Awaits] = {
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
_AARCH64: dict[int, Awaits] = {
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
_BY_MACHINE = {"x86_64": _X86_64, "aarch64": _AARCH64}

F_SETLKW, F_OFD_SETLKW = 7, 38
"""The two commands of fcntl that wait (include/uapi/asm-generic/fcntl.h)."""

P_ALL, P_PID, P_PGID, P_PIDFD = 0, 1, 2, 3
"""Kinds of identifier that waitid takes (include/uapi/linux/wait.h)."""


def awaits(number: int, machine: str) -> Awaits | None:
    """Return what a system call waits for; None for one that waits for nobody who could be found from here.

    >>> awaits(61, "x86_64"), awaits(202, "x86_64"), awaits(61, "riscv64")
    ('child', None, None)
    """
    return _BY_MACHINE.get(machine, {}).get(number)


def as_int(argument: int) -> int:
    """Read an argument of 64 bits as the signed int of 32 bits that the call takes.

    >>> as_int(0xFFFFFFFF), as_int(0xFFFFFFFFFFFFFFFF), as_int(7)
    (-1, -1, 7)
    """
    return (argument & 0xFFFFFFFF ^ 0x80000000) - 0x80000000
