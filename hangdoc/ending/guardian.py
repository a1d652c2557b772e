"""Let go on what hangdoc stopped, when hangdoc is no more: a program of its own, so that no kill takes both.

It is given each process as a descriptor before that is stopped, over a socket; when the socket closes, however that
comes about, each gets SIGCONT. One that has ended by then is not hit: a descriptor means no other process.
"""

from __future__ import annotations

import array
import signal
import socket

from hangdoc.launch.pidfd import send

ACKNOWLEDGED = b"k"
MOST_AT_ONCE = 64
"""Descriptors in one message; the kernel takes 253 (SCM_MAX_FD)."""


def guard(channel: socket.socket) -> None:
    """Take descriptors until the other side is gone, then let all of them go on."""
    held: list[int] = []
    size = socket.CMSG_SPACE(MOST_AT_ONCE * array.array("i").itemsize)
    while True:
        try:
            data, ancillary, _, _ = channel.recvmsg(1, size)
        except OSError:
            break
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                numbers = array.array("i")
                numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
                held += numbers
        if not data:
            break
        channel.send(ACKNOWLEDGED)
    for descriptor in held:
        try:
            send(descriptor, signal.SIGCONT)
        except OSError:
            continue


def main() -> None:
    """Guard over the socket that standard input is."""
    guard(socket.socket(fileno=0))


if __name__ == "__main__":
    main()
