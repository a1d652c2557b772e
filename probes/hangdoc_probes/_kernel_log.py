"""Read the kernel's log for errors of NVIDIA's driver, as far as this user may, and never wait for more."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from hangdoc.model.gpu import KernelXid
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.procfs.kmsg import parse_xid
from hangdoc_probes._reading import DENIED

PATH = "/dev/kmsg"
RECORD_BYTES = 8192
"""CONSOLE_EXT_LOG_MAX of the kernel: the longest record."""
MOST_RECORDS = 100_000
"""Records read in one go. Arbitrary: a ring of 16 MiB has some."""
KEPT = 32
"""Errors that are kept, the newest. Arbitrary."""

REMEDY = "run hangdoc as root on the host, or allow it: sudo sysctl kernel.dmesg_restrict=0"


class KernelLog:
    """The log from its beginning, read further in every call."""

    def __init__(self, path: str = PATH) -> None:
        self._path = path
        self._descriptor = -1
        self._found: list[KernelXid] = []

    def read(self) -> Reading[tuple[KernelXid, ...]]:
        """Return the newest errors of the driver since the machine started."""
        try:
            if self._descriptor < 0:
                self._descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            self._read_on()
        except OSError as error:
            if error.errno in DENIED:
                return Missing("gpu", "denied", "the kernel's log is not readable", REMEDY)
            return Missing("gpu", "unsupported", "the kernel's log is not to be had here", REMEDY)
        return Known(tuple(self._found[-KEPT:]))

    def close(self) -> None:
        """Let go of the log."""
        if self._descriptor >= 0:
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = -1

    def _read_on(self) -> None:
        for _ in range(MOST_RECORDS):
            try:
                record = os.read(self._descriptor, RECORD_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno == errno.EPIPE:
                    continue  # the ring has overtaken us: the next read is the oldest record that is left
                raise
            if not record:
                return
            if (line := parse_xid(record)) is not None:
                self._found.append(KernelXid(line.code, line.since_boot_ns, line.pid))
