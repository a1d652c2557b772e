"""Read one descriptor of another process: where it leads, how far it got, how full its pipe is."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import stat
import struct
import termios
from pathlib import Path

from hangdoc.model.fd import FdKind, OpenFile, PipeFill
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.procfs.descriptor import kind_of, parse_fdinfo
from hangdoc_probes._reading import missing, read

NAME = "fds"
PIDFD_GETFD = 438
"""System call number, the same on every architecture."""
NOT_A_FILE = Missing(NAME, "unsupported", "only a regular file has one")
NOT_A_PIPE = Missing(NAME, "unsupported", "not a pipe")
NOT_ASKED = Missing(NAME, "not-taken", "asked only for descriptors 1 and 2, and those that a thread writes to")

_libc = ctypes.CDLL(None, use_errno=True)


def target_of(proc: Path, pid: int, number: int) -> str:
    """Return what a descriptor points at."""
    link = os.readlink(f"{proc}/{pid}/fd/{number}")  # noqa: PTH115  "pipe:[1]" is no path
    return os.fsencode(link).decode("utf-8", "replace")


def describe(proc: Path, pid: int, number: int, target: str, *, fill: bool) -> OpenFile:
    """Read one descriptor. fill: ask a pipe how full it is, which needs the right to trace the process."""
    info = parse_fdinfo(read(f"{proc}/{pid}/fdinfo/{number}"))
    kind, status = _status(f"{proc}/{pid}/fd/{number}", kind_of(target))
    return OpenFile(
        fd=number,
        kind=kind,
        target=target,
        access=info.access,
        append=info.append,
        position=Known(info.position) if kind == "file" else NOT_A_FILE,
        size_bytes=status if isinstance(status, Missing) else Known(status.st_size),
        modified_wall_ns=status if isinstance(status, Missing) else Known(status.st_mtime_ns),
        deleted=not isinstance(status, Missing) and status.st_nlink == 0,
        pipe=_fill(pid, number, fill=fill) if kind == "pipe" else NOT_A_PIPE,
    )


def _status(path: str, kind: FdKind) -> tuple[FdKind, os.stat_result | Missing]:
    if kind not in {"file", "pipe"}:
        return kind, NOT_A_FILE
    try:
        status = os.stat(path)  # noqa: PTH116  the link leads into the target's own files, past every path
    except OSError as error:
        return kind, missing(NAME, error)
    if stat.S_ISREG(status.st_mode):
        return "file", status
    return ("pipe" if stat.S_ISFIFO(status.st_mode) else "other"), NOT_A_FILE


def _fill(pid: int, number: int, *, fill: bool) -> Reading[PipeFill]:
    if not fill:
        return NOT_ASKED
    try:
        ours = duplicate(pid, number)
    except OSError as error:
        return missing(NAME, error, attach=True)
    try:
        queued = struct.unpack("i", fcntl.ioctl(ours, termios.FIONREAD, bytes(4)))[0]
        return Known(PipeFill(queued, fcntl.fcntl(ours, fcntl.F_GETPIPE_SZ)))
    except OSError as error:
        return missing(NAME, error)
    finally:
        os.close(ours)


def timeout_of(pid: int, number: int, wants: str) -> Reading[float]:
    """Return after how many seconds a socket ends a wait for data (or room) by itself; 0: never (socket(7))."""
    option = socket.SO_RCVTIMEO if wants == "data" else socket.SO_SNDTIMEO
    try:
        number_here = duplicate(pid, number)
        try:
            ours = socket.socket(fileno=number_here)
        except OSError:
            os.close(number_here)  # it is no socket
            raise
        with ours:
            seconds, microseconds = _TIMEVAL.unpack(ours.getsockopt(socket.SOL_SOCKET, option, _TIMEVAL.size))
    except OSError as error:
        return missing("links", error, attach=True)
    return Known(seconds + microseconds / 1e6)


_TIMEVAL = struct.Struct("@ll")


def duplicate(pid: int, number: int) -> int:
    """Duplicate a descriptor of another process.

    Opening /proc/PID/fd/N anew would make hangdoc a reader of the pipe for a moment, which can hide a broken pipe
    from its writer; a duplicate of the writer's own end changes nothing.
    """
    process = os.pidfd_open(pid)
    try:
        ours: int = _libc.syscall(PIDFD_GETFD, process, number, 0)
        if ours < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return ours
    finally:
        os.close(process)
