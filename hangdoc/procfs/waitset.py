"""Parse the special lines of fdinfo: what an epoll set holds, which eventfd it is, whom a pidfd names."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from hangdoc.procfs.errors import refuse
from hangdoc.procfs.numbers import counter

POLLFD = struct.Struct("=ihh")
"""struct pollfd: fd, events, revents (include/uapi/asm-generic/poll.h)."""

POLLIN, POLLOUT = 1, 4
"""include/uapi/asm-generic/poll.h; the low bits of an epoll mask are the same (include/uapi/linux/eventpoll.h)."""


@dataclass(frozen=True, slots=True)
class Watched:
    """One descriptor of a poll or epoll set. writing: only room to write is waited for."""

    fd: int
    writing: bool = False


def parse_epoll(data: bytes) -> tuple[Watched, ...]:
    r"""Read the descriptors of an epoll set from its fdinfo (fs/eventpoll.c, ep_show_fdinfo).

    >>> parse_epoll(b"pos:\t0\nflags:\t02\ntfd:        5 events:       19 data:                5  pos:0 ino:9 sdev:a\n")
    (Watched(fd=5, writing=False),)
    """
    found = []
    for line in data.splitlines():
        words = line.split()
        if words[:1] != [b"tfd:"]:
            continue
        try:
            found.append(Watched(counter(words[1]), _only_writes(int(words[3], 16))))
        except (IndexError, ValueError):
            refuse("fdinfo", data)
    return tuple(found)


def parse_pollfds(data: bytes) -> tuple[Watched, ...]:
    """Read an array of struct pollfd; a negative descriptor is left out by the kernel, too.

    >>> parse_pollfds(POLLFD.pack(4, 1, 0) + POLLFD.pack(-1, 1, 0) + POLLFD.pack(7, 4, 0))
    (Watched(fd=4, writing=False), Watched(fd=7, writing=True))
    """
    whole = data[: len(data) - len(data) % POLLFD.size]
    return tuple(Watched(fd, _only_writes(events)) for fd, events, _ in POLLFD.iter_unpack(whole) if fd >= 0)


def parse_fd_set(data: bytes, *, writing: bool = False) -> tuple[Watched, ...]:
    """Read the bits of an fd_set, least significant first (select(2)).

    >>> [watched.fd for watched in parse_fd_set(bytes([0b1001, 0b10]))]
    [0, 3, 9]
    """
    return tuple(Watched(bit, writing) for bit in range(len(data) * 8) if data[bit // 8] >> bit % 8 & 1)


def _only_writes(events: int) -> bool:
    return bool(events & POLLOUT) and not events & POLLIN


def parse_labelled(data: bytes, label: bytes) -> int | None:
    r"""Read the number that follows a label in fdinfo ("eventfd-id", "Pid"); None when there is no such line.

    >>> parse_labelled(b"pos:\t0\nflags:\t02\neventfd-count:    0\neventfd-id: 12\n", b"eventfd-id")
    12
    """
    for line in data.splitlines():
        name, colon, value = line.partition(b":")
        if colon and name == label:
            try:
                return counter(value.strip())
            except ValueError:
                return None  # a pidfd whose process is gone or not visible says -1 or 0
    return None
