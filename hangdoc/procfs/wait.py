"""Parse what a thread waits in: /proc/PID/task/TID/syscall and wchan."""

from __future__ import annotations

from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.thread import SystemCall
from hangdoc.procfs.errors import refuse
from hangdoc.procfs.numbers import LARGEST, text

OUTSIDE_FIELDS = 3
"""A thread that is blocked outside a system call (a page fault, a stop): "-1 sp pc"."""
INSIDE_FIELDS = 9
"""A thread in a system call: its number, six arguments, sp, pc."""


def parse_system_call(data: bytes) -> SystemCall | None:
    r"""Read a syscall file; None for a thread that was running.

    >>> parse_system_call(b"running\n")
    >>> parse_system_call(b"-1 0x7ffd0 0x55e0\n")
    SystemCall(number=-1, args=())
    >>> parse_system_call(b"202 0x10 0x80 0x2 0x0 0x0 0x0 0x7ffd0 0x55e0\n")
    SystemCall(number=202, args=(16, 128, 2, 0, 0, 0))
    """
    fields = data.split()
    if fields == [b"running"]:
        return None
    if len(fields) == OUTSIDE_FIELDS and fields[0] == b"-1":
        return SystemCall(-1, ())
    if len(fields) != INSIDE_FIELDS:
        refuse("syscall", data)
    try:
        number, args = int(fields[0]), tuple([int(field, 16) for field in fields[1:7]])
    except ValueError:
        refuse("syscall", data)
    if not 0 <= number <= LARGEST or min(args) < 0 or max(args) > LARGEST:
        refuse("syscall", data)
    return SystemCall(number, args)


def parse_wait_channel(probe: str, state: str, data: bytes, *, allowed: bool = False) -> Reading[str]:
    """Read a wchan file; the kernel answers "0" both for "it runs" and for "you may not know".

    allowed: hangdoc may see more than this of the thread, so "0" means that it ran, whatever its state a moment later.

    >>> parse_wait_channel("futex", "S", b"futex_do_wait")
    Known(value='futex_do_wait')
    >>> parse_wait_channel("futex", "R", b"0")
    Known(value='')
    >>> parse_wait_channel("futex", "S", b"0").reason
    'denied'
    >>> parse_wait_channel("futex", "S", b"0", allowed=True)
    Known(value='')
    """
    name = text(data.strip())
    if name not in {"0", ""}:
        return Known(name)
    if allowed or state in {"R", "Z", "X"}:
        return Known("")
    return Missing(probe, "denied", 'the kernel answers "0"', "run hangdoc as root or as the target's user")
