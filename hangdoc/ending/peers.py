"""Which unix sockets are connected to which: how zmq joins the processes of a launch."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

from hangdoc.procfs import sockdiag

NETLINK_SOCK_DIAG = 4
"""include/uapi/linux/netlink.h."""

ANSWER_BYTES = 1 << 16
ANSWER_S = 0.5
"""How long one answer of the kernel may take; it comes at once. Arbitrary."""


def unix_peers() -> dict[int, int]:
    """Map each connected unix socket of hangdoc's own network namespace to its peer, by inode; empty if refused."""
    peers: dict[int, int] = {}
    with (
        suppress(OSError, sockdiag.DiagError),
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as diagnosis,
    ):
        diagnosis.settimeout(ANSWER_S)
        diagnosis.send(sockdiag.unix_request())
        last = False
        while not last:
            bodies, last = sockdiag.messages(diagnosis.recv(ANSWER_BYTES))
            found = (sockdiag.unix_socket(body) for body in bodies)
            peers.update({one.inode: one.peer for one in found if one is not None and one.peer})
    return peers


def bound_paths(net: Path) -> dict[int, str]:
    """Map the unix sockets of a network namespace that have a path in the file system to it (/proc/PID/net/unix)."""
    try:
        rows = (net / "unix").read_bytes().splitlines()[1:]
    except OSError:
        return {}
    fields = (row.split(None, 7) for row in rows)
    # Fields: number, references, protocol, flags, type, state, inode, path. "@" begins a name without a file.
    return {int(one[6]): os.fsdecode(one[7]) for one in fields if len(one) > 7 and one[7].startswith(b"/")}
