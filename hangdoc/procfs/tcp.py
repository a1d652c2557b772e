"""Parse /proc/PID/net/tcp and tcp6: which socket is connected to which."""

from __future__ import annotations

from dataclasses import dataclass

LOCAL_ADDRESS, REMOTE_ADDRESS, STATE, INODE = 1, 2, 3, 9
"""Columns (net/ipv4/tcp_ipv4.c, get_tcp4_sock)."""

LISTENING = b"0A"
"""TCP_LISTEN."""

MAPPED = b"0000000000000000FFFF0000"
"""How an IPv4 address inside an IPv6 one begins, in the kernel's words of 32 bits in the machine's (little) order."""


@dataclass(frozen=True, slots=True)
class TcpSocket:
    """One row. local, remote: address and port as the kernel prints them, IPv4 addresses always in their short form."""

    inode: int
    local: bytes
    remote: bytes
    listens: bool

    @property
    def local_port(self) -> int:
        """The port on this side."""
        return int(self.local.rpartition(b":")[2], 16)


def parse_tcp(data: bytes) -> tuple[TcpSocket, ...]:
    r"""Read a table. Inode 0: no process owns it, because nobody has accepted it yet or its owner has closed it.

    >>> head = b"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    >>> row = b"   0: 0100007F:7530 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0\n"
    >>> parse_tcp(head + row)[0].local_port
    30000
    """
    rows = (line.split() for line in data.splitlines()[1:])
    return tuple(
        TcpSocket(int(row[INODE]), _short(row[LOCAL_ADDRESS]), _short(row[REMOTE_ADDRESS]), row[STATE] == LISTENING)
        for row in rows
        if len(row) > INODE and row[INODE].isdigit() and _is_address(row[LOCAL_ADDRESS])
    )


def _is_address(field: bytes) -> bool:
    port = field.rpartition(b":")[2]
    return len(port) == 4 and all(digit in b"0123456789ABCDEF" for digit in port)


def _short(address: bytes) -> bytes:
    return address.removeprefix(MAPPED)
