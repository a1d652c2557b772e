"""Who holds the file lock that a thread waits for, wherever the holder runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import structs

from hangdoc.model.link import LinkEnd
from hangdoc.procfs.locks import FileLock, parse_lock_line, parse_locks
from hangdoc_probes._holders import Holders
from hangdoc_probes._reading import read_table

KINDS = {"flock": ("FLOCK",), "fcntl": ("POSIX", "OFDLCK")}
"""How /proc/locks calls what each system call takes (fs/locks.c)."""


def lock_table(proc: Path) -> tuple[FileLock, ...]:
    """Read every file lock of the host."""
    return parse_locks(read_table(f"{proc}/locks"))


def holders_of(
    locks: Sequence[FileLock], holders: Holders, pid: int, fd: int, call: str
) -> tuple[tuple[LinkEnd, ...], str]:
    """Return who holds the lock that a process waits for in flock or fcntl, and what can be said about it.

    The kernel names the process that took a lock. A lock of an open file (flock, OFD) lives on in every copy of its
    descriptor, so all that have one are listed, the others as inherited.
    """
    kinds = KINDS[call]
    waiting = _waiting_line(locks, holders, pid, fd, kinds)
    if waiting is None:
        return (), f"{call} of descriptor {fd}: the kernel's table has no such wait"
    held = [lock for lock in locks if lock.number == waiting.number and not lock.waits]
    ends = [end for lock in held if lock.pid and (end := holders.end(lock.pid)) is not None]
    if not ends or held[0].kind != "POSIX":
        known = {end.process.pid for end in ends}
        ends += [end for end in _copies(holders, pid, fd, held, inherited=bool(ends)) if end.process.pid not in known]
    kind = f"{waiting.kind.lower()} {waiting.access.lower()} lock"
    gone = [lock.pid for lock in held if lock.pid and holders.end(lock.pid) is None]
    told = f"; pid {gone[0]}, which took it, has ended" if gone else ""
    ends = [structs.replace(end, tree_ticks=holders.tree_ticks(end.process.pid)) for end in ends]
    return tuple(ends), f"{kind} on inode {waiting.inode}, descriptor {fd}{told}"


def _waiting_line(
    locks: Sequence[FileLock], holders: Holders, pid: int, fd: int, kinds: tuple[str, ...]
) -> FileLock | None:
    """Find the line of the wait: by the waiting process, and by the file where one process waits several times.

    Not by the file alone: on overlay and btrfs the table and stat call the same file's device differently.
    """
    waits = [lock for lock in locks if lock.waits and lock.kind in kinds and lock.pid in {pid, 0}]
    own = [lock for lock in waits if lock.pid == pid] or waits
    if len(own) > 1 or (own and own[0].pid == 0):
        try:
            inode, _ = holders.identity(pid, fd)
        except OSError:
            return None
        own = [lock for lock in own if lock.inode == inode]
    return own[0] if own else None


def _copies(holders: Holders, pid: int, fd: int, held: Sequence[FileLock], *, inherited: bool) -> list[LinkEnd]:
    """Find the processes whose descriptor of the file holds the lock: fdinfo of such a descriptor says so."""
    try:
        target = holders.files(pid)[fd]
    except (KeyError, OSError):
        return []
    found: dict[int, LinkEnd] = {}
    for one in holders.of(target):
        try:
            own = parse_lock_line(holders.info(one.pid, one.fd))
        except OSError:
            continue
        if any((lock.kind, lock.file) == (other.kind, other.file) for lock in own for other in held):
            end = holders.end(one.pid, one.fd, inherited=inherited)
            if end is not None and one.pid != pid:
                found.setdefault(one.pid, end)
    return list(found.values())
