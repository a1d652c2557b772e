"""What the kernel tells of a process through its pidfd: the request's number, and the answer's bytes to a status."""

from __future__ import annotations

import struct

GET_INFO_BYTES = 64
"""The first published size of struct pidfd_info (include/uapi/linux/pidfd.h); every later kernel takes it."""

GET_INFO = 3 << 30 | GET_INFO_BYTES << 16 | 0xFF << 8 | 11
"""PIDFD_GET_INFO: _IOWR(PIDFS_IOCTL_MAGIC, 11, struct pidfd_info), since Linux 6.13."""

INFO_EXIT = 1 << 3
"""PIDFD_INFO_EXIT, since Linux 6.15: the exit status, once the process has been waited for."""

MASK_AT, EXIT_AT = 0, 60


def exit_request() -> bytes:
    """Return the bytes that ask for the exit status."""
    return struct.pack("=Q", INFO_EXIT).ljust(GET_INFO_BYTES, b"\0")


def exit_status(answer: bytes) -> int | None:
    """Read the wait status; None while the process has not been waited for, or where the kernel does not tell.

    >>> exit_status(struct.pack("=Q52xi", 0xC, 7 << 8)), exit_status(struct.pack("=Q52xi", 0x4, 0))
    (1792, None)
    """
    if len(answer) < GET_INFO_BYTES or not struct.unpack_from("=Q", answer, MASK_AT)[0] & INFO_EXIT:
        return None
    status: int = struct.unpack_from("=i", answer, EXIT_AT)[0]
    return status
