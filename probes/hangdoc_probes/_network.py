"""Ask the kernel about sockets in a process's own network namespace: unix peers, TCP neighbours, TCP totals."""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from hangdoc.procfs import sockdiag
from hangdoc.procfs.sockdiag import DiagError, TcpTotals, UnixSocket
from hangdoc.procfs.tcp import TcpSocket, parse_tcp
from hangdoc_probes._reading import numbered, read_table

NETLINK_SOCK_DIAG = 4
"""include/uapi/linux/netlink.h."""

CLONE_NEWNET = 0x40000000
"""include/uapi/linux/sched.h."""

ANSWER_BYTES = 1 << 16
ANSWER_S = 0.5
"""How long one answer of the kernel may take; it comes at once. Arbitrary."""

T = TypeVar("T")
_libc = ctypes.CDLL(None, use_errno=True)


def namespace(proc: Path, pid: int) -> str:
    """Return the name of a process's network namespace ("net:[4026531840]")."""
    return os.readlink(f"{proc}/{pid}/ns/net")  # noqa: PTH115  "net:[1]" is no path


class Diagnosis:
    """A netlink socket in one network namespace. Opening it needs CAP_SYS_ADMIN when the namespace is another's."""

    def __init__(self, proc: Path, pid: int) -> None:
        self.namespace = namespace(proc, pid)
        ours = namespace(proc, os.getpid())
        path = "" if self.namespace == ours else f"{proc}/{pid}/ns/net"
        self._socket = _open() if not path else elsewhere(lambda: _open(path))

    def unix(self) -> dict[int, UnixSocket]:
        """Return every unix socket of the namespace by its inode."""
        sockets = map(sockdiag.unix_socket, self._ask(sockdiag.unix_request()))
        return {one.inode: one for one in sockets if one is not None}

    def totals(self) -> dict[int, TcpTotals]:
        """Return the totals of every TCP connection of the namespace by its inode."""
        found = {}
        for family in (sockdiag.AF_INET, sockdiag.AF_INET6):
            for one in map(sockdiag.tcp_totals, self._ask(sockdiag.tcp_request(family))):
                if one is not None:
                    found[one.inode] = one
        return found

    def close(self) -> None:
        """Let go of the socket."""
        self._socket.close()

    def _ask(self, request: bytes) -> Iterator[bytes]:
        try:
            self._socket.send(request)
            last = False
            while not last:
                bodies, last = sockdiag.messages(self._socket.recv(ANSWER_BYTES))
                yield from bodies
        except DiagError as error:
            raise OSError(error.number, os.strerror(error.number)) from error


def tcp_table(proc: Path, pid: int) -> tuple[TcpSocket, ...]:
    """Return the TCP sockets of a process's network namespace."""
    found: list[TcpSocket] = []
    for name in ("tcp", "tcp6"):
        try:
            found += parse_tcp(read_table(f"{proc}/{pid}/net/{name}"))
        except FileNotFoundError:
            continue  # a kernel without IPv6
    return tuple(found)


def socket_at(proc: Path, pid: int, family: socket.AddressFamily) -> socket.socket:
    """Open a TCP socket in the network namespace of a process, where its local addresses are.

    PermissionError where that is another one and cannot be entered.
    """
    if namespace(proc, pid) == namespace(proc, os.getpid()):
        return socket.socket(family, socket.SOCK_STREAM)

    def opened() -> socket.socket:
        enter(f"{proc}/{pid}/ns/net")
        return socket.socket(family, socket.SOCK_STREAM)

    return elsewhere(opened)


def sockets_of(proc: Path, pid: int) -> Iterable[int]:
    """Yield the inode of each socket that a process holds."""
    for number in numbered(f"{proc}/{pid}/fd"):
        try:
            target = os.readlink(f"{proc}/{pid}/fd/{number}")  # noqa: PTH115  "socket:[1]" is no path
        except FileNotFoundError:
            continue  # closed meanwhile
        if target.startswith("socket:["):
            yield int(target[8:-1])


def host_of(listening: TcpSocket) -> str:
    """Return an address at which a listening socket can be reached from its own machine.

    >>> host_of(TcpSocket(1, b"0100007F:7530", b"", True)), host_of(TcpSocket(1, b"0" * 32 + b":7530", b"", True))
    ('127.0.0.1', '::1')
    """
    words = bytes.fromhex(listening.local.rpartition(b":")[0].decode("ascii"))
    # The kernel prints words of 32 bits in the machine's order, which is little on every machine hangdoc knows.
    address = b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4))
    if not any(address):
        return "127.0.0.1" if len(address) == 4 else "::1"
    return socket.inet_ntop(socket.AF_INET if len(address) == 4 else socket.AF_INET6, address)


def _open(path: str = "") -> socket.socket:
    if path:
        enter(path)
    opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_SOCK_DIAG)
    opened.settimeout(ANSWER_S)
    return opened


def enter(path: str) -> None:
    """Move this thread into a network namespace; PermissionError without CAP_SYS_ADMIN."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _libc.setns(descriptor, CLONE_NEWNET) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), path)
    finally:
        os.close(descriptor)


def elsewhere(work: Callable[[], T]) -> T:
    """Do something in a thread of its own that ends with it: the namespace is the thread's, not the process's."""
    results: list[T] = []
    errors: list[OSError] = []

    def run() -> None:
        try:
            results.append(work())
        except OSError as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="hangdoc-namespace", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
