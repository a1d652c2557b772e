"""Parse /proc/PID/maps: what lies where in an address space."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from hangdoc.procfs.errors import refuse
from hangdoc.procfs.numbers import LARGEST, counter, text

LEAST_FIELDS = 5


@dataclass(frozen=True)
class Mapping:
    """One line of maps. end: the first address after it; shared: writes are seen by other processes."""

    start: int
    end: int
    readable: bool
    writable: bool
    shared: bool
    offset: int
    device: str
    inode: int
    path: str


def parse_maps(data: bytes) -> tuple[Mapping, ...]:
    r"""Read a maps file; the kernel lists it by address.

    >>> parse_maps(b"7f00-7f10 rw-s 00000020 00:01 42   /dev/zero (deleted)\n")  # doctest: +ELLIPSIS
    (Mapping(start=32512, ..., path='/dev/zero (deleted)'),)
    """
    return tuple(_line(line) for line in data.splitlines() if line)


def _line(line: bytes) -> Mapping:
    fields = line.split(None, LEAST_FIELDS)
    try:
        start, end = (int(field, 16) for field in fields[0].split(b"-"))
        rights, offset, device, inode = fields[1], int(fields[2], 16), fields[3].decode("ascii"), counter(fields[4])
    except (IndexError, ValueError):
        refuse("maps", line)
    if not 0 <= start <= end <= LARGEST + 1 or not 0 <= offset <= LARGEST or len(rights) != 4:
        refuse("maps", line)
    path = text(fields[5].rstrip()) if len(fields) > LEAST_FIELDS else ""
    readable, writable, shared = rights[:1] == b"r", rights[1:2] == b"w", rights[3:] == b"s"
    return Mapping(start, end, readable, writable, shared, offset, device, inode, path)


_SHARED = re.compile(rb"^\S+ ...s \S+ (\S+) (\d+)", re.MULTILINE)
"""The device and inode of a shared mapping's line."""


def shared_files(data: bytes) -> frozenset[str]:
    r"""Return "device:inode" of all that a maps file shows as shared, without a record of each of its lines.

    >>> shared_files(b"7f00-7f10 rw-s 00000020 00:01 42   /dev/zero (deleted)\n7f10-7f20 r--p 00000000 00:02 7\n")
    frozenset({'00:01:42'})
    """
    return frozenset(f"{device.decode('ascii')}:{int(inode)}" for device, inode in _SHARED.findall(data))


def may_be_opened(path: str) -> bool:
    """Tell whether anybody who knows a name may map this memory; multiprocessing's names are random and told to nobody.

    >>> [may_be_opened(path) for path in ("/dev/shm/sem.jobs", "/dev/shm/sem.mp-x1y2z3", "/dev/shm/sem.jobs (deleted)")]
    [True, False, False]
    """
    if path.startswith("/SYSV"):
        return not path.startswith("/SYSV00000000")
    return path.startswith("/") and not path.endswith(DELETED) and not path.startswith(_OF_MULTIPROCESSING)


DELETED = " (deleted)"
"""How the path of a mapping ends whose file has no name any more (fs/d_path.c); memory without a file has none."""

_OF_MULTIPROCESSING = "/dev/shm/sem.mp-"  # noqa: S108  compared with, never opened
"""How the names of its semaphores begin (multiprocessing/synchronize.py); they stay there where it starts by spawn."""


def mapping_at(mappings: Sequence[Mapping], address: int) -> Mapping | None:
    """Return the mapping that an address lies in."""
    at = bisect_right(mappings, address, key=lambda mapping: mapping.start) - 1
    return mappings[at] if at >= 0 and address < mappings[at].end else None


def shared_key(mappings: Sequence[Mapping], address: int) -> str:
    """Return the key under which processes share a futex ("device:inode:offset"), "" where memory is private.

    The kernel finds a futex that is not private by its file and its place in it (kernel/futex/core.c, get_futex_key);
    memory that a fork shares without a file is a file too, with an inode of its own.
    """
    mapping = mapping_at(mappings, address)
    if mapping is None or not mapping.shared:
        return ""
    return f"{mapping.device}:{mapping.inode}:{address - mapping.start + mapping.offset}"
