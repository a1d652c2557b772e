"""Read which descriptors a thread waits for in poll, select or epoll: from its memory, without stopping it."""

from __future__ import annotations

from hangdoc.memory.image import Image
from hangdoc.procfs.waitset import POLLFD, Watched, parse_epoll, parse_fd_set, parse_pollfds
from hangdoc_probes._holders import Holders

MOST_WATCHED = 64
"""Descriptors of one set that are resolved; beyond that nobody in particular is waited for. Arbitrary."""

MOST_BITS = 1024
"""FD_SETSIZE: what an fd_set of the C library holds."""


def poll_set(memory: Image, args: tuple[int, ...]) -> tuple[Watched, ...]:
    """Return what poll(fds, nfds) waits for."""
    count = min(args[1], MOST_WATCHED + 1)
    return parse_pollfds(memory.read(args[0], count * POLLFD.size)) if count else ()


def select_set(memory: Image, args: tuple[int, ...]) -> tuple[Watched, ...]:
    """Return what select(nfds, readfds, writefds) waits for."""
    length = (min(args[0] & 0xFFFFFFFF, MOST_BITS) + 7) // 8
    reading = parse_fd_set(memory.read(args[1], length)) if args[1] and length else ()
    writing = parse_fd_set(memory.read(args[2], length), writing=True) if args[2] and length else ()
    return (*reading, *writing)


def epoll_set(holders: Holders, pid: int, args: tuple[int, ...]) -> tuple[Watched, ...]:
    """Return what epoll_wait(epfd) waits for."""
    return parse_epoll(holders.info(pid, args[0]))
