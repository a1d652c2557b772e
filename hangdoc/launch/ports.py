"""Find who listens on a TCP port, in every network namespace that can be reached."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hangdoc.launch.table import Table, is_same

LISTENING = b"0A"
"""TCP_LISTEN as the kernel's tables print it."""

LOCAL_ADDRESS, STATE, INODE = 1, 3, 9
"""Columns of /proc/net/tcp."""


@dataclass(frozen=True, slots=True)
class Holders:
    """Who listens. is_hidden: somebody does, but whose socket it is may not be looked at."""

    pids: frozenset[int]
    is_hidden: bool


def parse_listening(data: bytes, port: int) -> set[int]:
    r"""Read the inodes of the sockets that listen on a port from /proc/net/tcp or tcp6.

    >>> head = b"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    >>> row = b"   0: 0100007F:7530 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0\n"
    >>> parse_listening(head + row, 30000), parse_listening(head + row, 30001)
    ({4242}, set())
    """
    wanted = b":%04X" % port
    rows = (line.split() for line in data.splitlines()[1:])
    return {
        int(row[INODE])
        for row in rows
        if len(row) > INODE and row[STATE] == LISTENING and row[LOCAL_ADDRESS].endswith(wanted) and row[INODE].isdigit()
    }


def holders(proc: Path, table: Table, port: int) -> Holders:
    """Find the processes that hold a socket listening on this port.

    A child that inherited the socket holds it too: it is of the same launch, or its parent is the culprit anyway.
    A process whose network namespace may not be looked at is taken to be in hangdoc's own.
    """
    namespaces: dict[str, list[int]] = {}
    for entry in table.values():
        if entry.kind != "kernel":
            namespaces.setdefault(_namespace(proc, entry.pid), []).append(entry.pid)
    found: set[int] = set()
    is_hidden = False
    for name, pids in namespaces.items():
        inodes = _listening(proc / str(pids[0]) / "net" if name else proc / "net", port)
        here = {pid for pid in pids if inodes and _holds(proc, pid, inodes) and is_same(proc, table[pid].key)}
        is_hidden = is_hidden or (bool(inodes) and not here)
        found |= here
    return Holders(frozenset(found), is_hidden and not found)


def _namespace(proc: Path, pid: int) -> str:
    try:
        return str((proc / str(pid) / "ns" / "net").readlink())
    except OSError:
        return ""


def _listening(net: Path, port: int) -> set[int]:
    inodes: set[int] = set()
    for name in ("tcp", "tcp6"):
        try:
            inodes |= parse_listening((net / name).read_bytes(), port)
        except OSError:
            continue
    return inodes


def _holds(proc: Path, pid: int, inodes: set[int]) -> bool:
    wanted = {f"socket:[{inode}]" for inode in inodes}
    try:
        links = list((proc / str(pid) / "fd").iterdir())
    except OSError:
        return False
    return any(_target(link) in wanted for link in links)


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""
