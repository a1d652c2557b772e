"""Build requests to the kernel's socket diagnosis (netlink) and parse its answers: unix peers, TCP totals."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

HEADER = struct.Struct("=IHHII")
"""struct nlmsghdr: length, type, flags, sequence, port (include/uapi/linux/netlink.h)."""

ATTRIBUTE = struct.Struct("=HH")
"""struct nlattr: length, type."""

SOCK_DIAG_BY_FAMILY, REQUEST_DUMP = 20, 0x301
"""include/uapi/linux/sock_diag.h; NLM_F_REQUEST | NLM_F_ROOT | NLM_F_MATCH."""

ERROR, DONE = 2, 3
"""NLMSG_ERROR, NLMSG_DONE."""

AF_UNIX, AF_INET, AF_INET6, TCP = 1, 2, 10, 6

UNIX_REQUEST = struct.Struct("=BBHIIIII")
"""struct unix_diag_req (include/uapi/linux/unix_diag.h)."""
SHOW_NAME, SHOW_PEER, SHOW_PENDING = 1, 4, 8
UNIX_ANSWER = struct.Struct("=BBBBIII")
"""struct unix_diag_msg: family, type, state, pad, inode, cookie."""
UNIX_NAME, UNIX_PEER, UNIX_PENDING = 0, 2, 3
LISTENS = 10
"""TCP_LISTEN, which unix sockets use as well."""

INET_REQUEST = struct.Struct("=BBBBI48s")
"""struct inet_diag_req_v2: family, protocol, extensions, pad, states, id (include/uapi/linux/inet_diag.h)."""
INET_ANSWER = struct.Struct("=BBBB48sIIIII")
"""struct inet_diag_msg: family, state, timer, retrans, id, expires, rqueue, wqueue, uid, inode."""
INET_INFO = 2
ALL_STATES = 0xFFFFFFFF
CONNECTED_STATES = ALL_STATES & ~(1 << 10 | 1 << 6)
"""All but TCP_LISTEN and TCP_TIME_WAIT."""

BYTES_ACKED, BYTES_RECEIVED = 120, 128
"""Offsets of tcpi_bytes_acked and tcpi_bytes_received in struct tcp_info (include/uapi/linux/tcp.h; since 4.1)."""
DATA_SEGMENTS = 152
"""Offset of tcpi_data_segs_in, which tcpi_data_segs_out follows (since 4.6)."""


@dataclass(frozen=True, slots=True)
class UnixSocket:
    """A unix socket.

    peer: inode of the connected one, 0 without, and as long as nobody has accepted the connection; bound: it has a
    name, as a server's sockets do; pending: of a listener, the inodes of those that wait to be accepted.
    """

    inode: int
    peer: int
    listens: bool
    bound: bool
    pending: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TcpTotals:
    """What a TCP connection has moved since it began. segments: that carried data; 0 where they are not counted."""

    inode: int
    received_bytes: int
    acked_bytes: int
    segments: int = 0


class DiagError(Exception):
    """The kernel answered with an error. number: its errno."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def unix_request() -> bytes:
    """Ask for every unix socket with its name, its peer and who waits to be accepted by it."""
    shown = SHOW_NAME | SHOW_PEER | SHOW_PENDING
    return _request(UNIX_REQUEST.pack(AF_UNIX, 0, 0, ALL_STATES, 0, shown, ALL_STATES, ALL_STATES))


def tcp_request(family: int) -> bytes:
    """Ask for every TCP connection of a family with its totals."""
    return _request(INET_REQUEST.pack(family, TCP, 1 << INET_INFO - 1, 0, CONNECTED_STATES, bytes(48)))


def _request(body: bytes) -> bytes:
    return HEADER.pack(HEADER.size + len(body), SOCK_DIAG_BY_FAMILY, REQUEST_DUMP, 1, 0) + body


def messages(data: bytes) -> tuple[list[bytes], bool]:
    """Split one datagram into the bodies of its messages; True when it was the last. DiagError for an error."""
    bodies: list[bytes] = []
    offset = 0
    while offset + HEADER.size <= len(data):
        length, kind, _, _, _ = HEADER.unpack_from(data, offset)
        if kind == DONE:
            return bodies, True
        if length < HEADER.size:
            break
        body = data[offset + HEADER.size : offset + length]
        if kind == ERROR:
            raise DiagError(-int.from_bytes(body[:4], "little", signed=True) if len(body) >= 4 else 0)
        bodies.append(body)
        offset += length + 3 & ~3
    return bodies, False


def unix_socket(body: bytes) -> UnixSocket | None:
    """Read one unix socket.

    >>> unix_socket(UNIX_ANSWER.pack(1, 1, 1, 0, 70, 0, 0) + ATTRIBUTE.pack(8, 2) + (71).to_bytes(4, "little"))
    UnixSocket(inode=70, peer=71, listens=False, bound=False, pending=())
    """
    if len(body) < UNIX_ANSWER.size:
        return None
    _, _, state, _, inode, _, _ = UNIX_ANSWER.unpack_from(body)
    found = dict(_attributes(body[UNIX_ANSWER.size :]))
    peer = int.from_bytes(found.get(UNIX_PEER, b"")[:4], "little")
    waiting = found.get(UNIX_PENDING, b"")
    pending = struct.unpack(f"={len(waiting) // 4}I", waiting[: len(waiting) // 4 * 4])
    return UnixSocket(inode, peer, state == LISTENS, bool(found.get(UNIX_NAME)), pending)


def tcp_totals(body: bytes) -> TcpTotals | None:
    """Read the totals of one TCP connection; None without an inode (nobody owns it any more) or without totals."""
    if len(body) < INET_ANSWER.size:
        return None
    inode = INET_ANSWER.unpack_from(body)[-1]
    info = dict(_attributes(body[INET_ANSWER.size :])).get(INET_INFO, b"")
    if inode == 0 or len(info) < BYTES_RECEIVED + 8:
        return None
    acked, received = struct.unpack_from("=QQ", info, BYTES_ACKED)
    counted = len(info) >= DATA_SEGMENTS + 8
    return TcpTotals(inode, received, acked, sum(struct.unpack_from("=II", info, DATA_SEGMENTS)) if counted else 0)


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset + ATTRIBUTE.size <= len(data):
        length, kind = ATTRIBUTE.unpack_from(data, offset)
        if length < ATTRIBUTE.size:
            return
        yield kind, data[offset + ATTRIBUTE.size : offset + length]
        offset += length + 3 & ~3
