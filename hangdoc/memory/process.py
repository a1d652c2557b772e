"""Reads the memory of a live process with process_vm_readv, or through /proc/PID/mem where that call is blocked."""

from __future__ import annotations

import ctypes
import errno
import os
from array import array
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from hangdoc.memory.image import MOST_BYTES, unreadable

ADDRESSES = 1 << 63
"""User space ends far below; the kernel takes larger numbers for negative ones."""
SMALL_BYTES = 512
MOST_RANGES = 1024
"""UIO_MAXIOV (include/uapi/linux/uio.h): ranges in one call."""
BLOCKED = frozenset({errno.ENOSYS, errno.EPERM})
"""A seccomp filter answers with these for the call alone (older Docker): the file may still be readable."""


class ProcessMemory:
    """A process's memory as it is at each read; the process goes on meanwhile.

    Reading needs the right to trace: PermissionError tells that it is lacking, at the first read. ProcessLookupError:
    the process has ended.
    """

    def __init__(self, pid: int, proc: Path = Path("/proc")) -> None:
        self._pid = pid
        self._path = f"{proc}/{pid}/mem"
        self._file = -1
        # The call takes the numbers of hangdoc's own /proc; of another one only the file is of the right process.
        self._by_file = proc != Path("/proc")
        self._buffer = ctypes.create_string_buffer(SMALL_BYTES)
        self._room = array("Q", (ctypes.addressof(self._buffer), SMALL_BYTES))
        self._range = array("Q", (0, 0))
        self._room_at, self._range_at = self._room.buffer_info()[0], self._range.buffer_info()[0]

    def close(self) -> None:
        """Let go of the file, if it was needed."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def read(self, address: int, size: int) -> bytes:
        """Return exactly so many bytes, or raise UnreadableError."""
        if size <= SMALL_BYTES and not self._by_file and _plausible(address, size):
            data = self._small(address, size)
            if data is not None:
                return data
        (data,) = self.read_many([(address, size)])
        if data is None:
            raise unreadable(address, size)
        return data

    def _small(self, address: int, size: int) -> bytes | None:
        """Read into a buffer that is kept for it, which is what most reads need; None: look closer what is wrong."""
        self._range[0], self._range[1], self._room[1] = address, size, size
        if _call()(self._pid, self._room_at, 1, self._range_at, 1, 0) != size:
            return None
        return self._buffer.raw[:size]

    def read_many(self, ranges: Sequence[tuple[int, int]]) -> list[bytes | None]:
        """Read ranges at once; None for each that cannot be read."""
        found: list[bytes | None] = []
        while len(found) < len(ranges):
            address, size = ranges[len(found)]
            if not _plausible(address, size):
                found.append(None)
                continue
            found += self._some(ranges[len(found) : len(found) + MOST_RANGES])
        return found

    def _some(self, ranges: Sequence[tuple[int, int]]) -> list[bytes | None]:
        """Read at least the first of the ranges, at most up to the first that cannot be."""
        usable = next((at for at, one in enumerate(ranges) if not _plausible(*one)), len(ranges))
        ranges = _within(ranges[:usable])
        if self._by_file:
            return [self._from_file(*ranges[0])]
        buffer = bytearray(sum([size for _, size in ranges]))
        try:
            got = _read_vector(self._pid, buffer, ranges)
        except OSError as error:
            if error.errno in BLOCKED:
                self._by_file = True
                return [self._from_file(*ranges[0])]
            if error.errno != errno.EFAULT:
                raise
            return [None]
        return _cut(buffer, got, ranges)

    def _from_file(self, address: int, size: int) -> bytes | None:
        if self._file < 0:
            self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.pread(self._file, size, address)
        except OSError as error:
            if error.errno in {errno.EIO, errno.EFAULT}:
                return None
            raise
        if not data and size:
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))  # the address space is gone
        return data if len(data) == size else None


def _plausible(address: int, size: int) -> bool:
    return address > 0 and address + size < ADDRESSES and 0 < size <= MOST_BYTES


def _within(ranges: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    total = 0
    for at, (_, size) in enumerate(ranges):
        total += size
        if total > MOST_BYTES and at:
            return ranges[:at]
    return ranges


def _cut(buffer: bytearray, got: int, ranges: Sequence[tuple[int, int]]) -> list[bytes | None]:
    """Give each range its bytes; the kernel stops in the first range that it cannot read."""
    found: list[bytes | None] = []
    data, start = bytes(buffer), 0
    for _, size in ranges:
        if start + size > got:
            return [*found, None]
        found.append(data[start : start + size])
        start += size
    return found


@cache
def _call() -> Any:
    call = ctypes.CDLL(None, use_errno=True).process_vm_readv
    call.restype = ctypes.c_ssize_t
    pointer, count = ctypes.c_void_p, ctypes.c_ulong
    call.argtypes = (ctypes.c_int, pointer, count, pointer, count, count)
    return call


def _read_vector(pid: int, buffer: bytearray, ranges: Sequence[tuple[int, int]]) -> int:
    size = len(buffer)
    target = (ctypes.c_char * size).from_buffer(buffer)
    local = array("Q", (ctypes.addressof(target), size))
    remote = array("Q", [number for one in ranges for number in one])
    got = int(_call()(pid, local.buffer_info()[0], 1, remote.buffer_info()[0], len(ranges), 0))
    if got < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return got
