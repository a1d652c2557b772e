"""Read the memory of another process while it runs on: no ptrace, no signal, no stop."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

from hangdoc.model.reading import Known, Missing, Reading
from hangdoc_probes._reading import missing

MOST_AT_ONCE_BYTES = 1 << 20
"""Largest piece of one read: a length found in a target's memory may be anything. Arbitrary."""

LAST_ADDRESS = 1 << 56
"""Above every user address of x86-64 (five levels) and aarch64 (52 bits)."""


class _Piece(ctypes.Structure):
    """struct iovec (readv(2))."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


_libc = ctypes.CDLL(None, use_errno=True)
_READV = getattr(_libc, "process_vm_readv", None)
if _READV is not None:
    _READV.restype = ctypes.c_ssize_t
    _READV.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong]


class Memory:
    """One process's memory. What is not mapped, denied or gone is Missing; a read is whole or Missing."""

    def __init__(self, probe: str, pid: int, proc: Path = Path("/proc")) -> None:
        self._probe = probe
        self._pid = pid
        self._path = f"{proc}/{pid}/mem"
        self._file = -1
        # A container's system call filter may refuse process_vm_readv where the file may still be read.
        self._by_file = _READV is None or proc != Path("/proc")

    def read(self, address: int, length: int) -> Reading[bytes]:
        """Read a piece of the memory."""
        if not (0 < length <= MOST_AT_ONCE_BYTES and 0 < address < LAST_ADDRESS):
            return Missing(self._probe, "failed", "an address or a length in the memory makes no sense")
        try:
            data = self._from_file(address, length) if self._by_file else self._from_process(address, length)
        except OSError as error:
            if not self._by_file and error.errno in {errno.EPERM, errno.ENOSYS}:
                self._by_file = True
                return self.read(address, length)
            return self._missing(error)
        if len(data) < length:
            return Missing(self._probe, "failed", "a part of the memory is not mapped")
        return Known(data)

    def close(self) -> None:
        """Let go of the file, if it was needed."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _from_process(self, address: int, length: int) -> bytes:
        assert _READV is not None
        buffer = ctypes.create_string_buffer(length)
        here = _Piece(ctypes.addressof(buffer), length)
        there = _Piece(address, length)
        count = _READV(self._pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
        if count < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return buffer.raw[:count]

    def _from_file(self, address: int, length: int) -> bytes:
        if self._file < 0:
            self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        return os.pread(self._file, length, address)

    def _missing(self, error: OSError) -> Missing:
        if error.errno in {errno.EFAULT, errno.EIO}:
            return Missing(self._probe, "failed", "a part of the memory is not mapped")
        return missing(self._probe, error, attach=True)
