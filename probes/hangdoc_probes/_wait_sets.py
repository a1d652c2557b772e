"""Read which descriptors a thread waits for in poll, select or epoll: from its memory, without stopping it."""

from __future__ import annotations

import ctypes
import os

from hangdoc.procfs.waitset import POLLFD, Watched, parse_epoll, parse_fd_set, parse_pollfds
from hangdoc_probes._holders import Holders

MOST_WATCHED = 64
"""Descriptors of one set that are resolved; beyond that nobody in particular is waited for. Arbitrary."""

MOST_BITS = 1024
"""FD_SETSIZE: what an fd_set of the C library holds."""


class _Span(ctypes.Structure):
    """struct iovec."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


_libc = ctypes.CDLL(None, use_errno=True)
_libc.process_vm_readv.restype = ctypes.c_ssize_t
_libc.process_vm_readv.argtypes = [
    ctypes.c_int,
    ctypes.POINTER(_Span),
    ctypes.c_ulong,
    ctypes.POINTER(_Span),
    ctypes.c_ulong,
    ctypes.c_ulong,
]


def peek(pid: int, address: int, length: int) -> bytes:
    """Read another process's memory; OSError when that is refused or the address is not mapped."""
    buffer = ctypes.create_string_buffer(length)
    here, there = _Span(ctypes.addressof(buffer), length), _Span(address, length)
    count = _libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    if count < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return buffer.raw[:count]


def poll_set(pid: int, args: tuple[int, ...]) -> tuple[Watched, ...]:
    """Return what poll(fds, nfds) waits for."""
    count = min(args[1], MOST_WATCHED + 1)
    return parse_pollfds(peek(pid, args[0], count * POLLFD.size)) if count else ()


def select_set(pid: int, args: tuple[int, ...]) -> tuple[Watched, ...]:
    """Return what select(nfds, readfds, writefds) waits for."""
    length = (min(args[0] & 0xFFFFFFFF, MOST_BITS) + 7) // 8
    reading = parse_fd_set(peek(pid, args[1], length)) if args[1] and length else ()
    writing = parse_fd_set(peek(pid, args[2], length), writing=True) if args[2] and length else ()
    return (*reading, *writing)


def epoll_set(holders: Holders, pid: int, args: tuple[int, ...]) -> tuple[Watched, ...]:
    """Return what epoll_wait(epfd) waits for."""
    return parse_epoll(holders.info(pid, args[0]))
