"""Who holds the file lock that a thread waits for, wherever the holder runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Taken:
    """Who holds the locks that a wait is for: all have to let go. sure: each of them has one holder who is known."""

    ends: tuple[LinkEnd, ...]
    told: str
    sure: bool = False


def holders_of(locks: Sequence[FileLock], holders: Holders, pid: int, fd: int, call: str) -> Taken:
    """Return who holds what a process waits for in flock or fcntl: several where readers share the lock."""
    waiting = _waiting_line(locks, holders, pid, fd, KINDS[call])
    if waiting is None:
        return Taken((), f"{call} of descriptor {fd}: the kernel's table has no such wait")
    held = [lock for lock in locks if lock.stands_against(waiting) and (lock.kind, lock.pid) != ("POSIX", pid)]
    copies = _copies(holders, pid, fd, held)
    by_lock = [_ends_of(holders, lock, copies[lock]) for lock in held]
    ends: dict[int, LinkEnd] = {}
    for end in sorted((end for own in by_lock for end in own), key=lambda end: end.inherited):
        ends.setdefault(end.process.pid, structs.replace(end, tree_ticks=holders.tree_ticks(end.process.pid)))
    told = f"{waiting.kind.lower()} {waiting.access.lower()} lock on inode {waiting.inode}, descriptor {fd}"
    told += "".join(_taker(holders, lock, own) for lock, own in zip(held, by_lock, strict=True))
    sure = bool(held) and all(sum(not end.inherited for end in own) == 1 for own in by_lock)
    return Taken(tuple(ends.values()), told, sure)


def lease_of(locks: Sequence[FileLock], holders: Holders, pid: int, patience_s: int) -> Taken | None:
    """Return who has the lease that a process waits for in open(2); None when it waits for none.

    patience_s: after which the kernel takes the lease away from who does not give it back (fs/locks.c, __break_lease);
    0: never, so that only the holder can end the wait.
    """
    waiting = next((lock for lock in locks if lock.waits and (lock.kind, lock.pid) == ("LEASE", pid)), None)
    if waiting is None:
        return None
    held = [lock for lock in locks if (lock.number, lock.kind, lock.waits) == (waiting.number, "LEASE", False)]
    ends = [end for lock in held if lock.pid and (end := holders.end(lock.pid)) is not None]
    told = f"lease on inode {held[0].inode if held else 0}"
    told += f", which the kernel takes away after {patience_s} s" if patience_s else ", until it is given back"
    return Taken(tuple(ends), told, sure=not patience_s and len(ends) == 1)


def _ends_of(holders: Holders, lock: FileLock, copies: Mapping[int, int]) -> list[LinkEnd]:
    """Return who has to let go of one lock, those that inherited it last; copies: a descriptor of it by process.

    The kernel goes on naming the process that took a lock. A record lock (POSIX) is that process's; one of an open file
    (flock, OFD) is held by whoever has a copy of the descriptor, which the taker may have closed long ago.
    """
    if lock.kind == "POSIX" or (not copies and lock.pid and not _is_seen(holders, lock.pid)):
        end = holders.end(lock.pid) if lock.pid else None
        return [] if end is None else [end]
    found = [holders.end(one, fd, inherited=lock.pid in copies and one != lock.pid) for one, fd in copies.items()]
    return sorted((end for end in found if end is not None), key=lambda end: end.inherited)


def _is_seen(holders: Holders, pid: int) -> bool:
    try:
        holders.files(pid)
    except OSError:
        return False
    return True


def _taker(holders: Holders, lock: FileLock, ends: Sequence[LinkEnd]) -> str:
    """Say what became of the process that the kernel names, where it does not hold the lock any more."""
    if not lock.pid or any(end.process.pid == lock.pid for end in ends):
        return ""
    return f"; pid {lock.pid}, which took it, has {'closed it' if holders.end(lock.pid) else 'ended'}"


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


def _copies(holders: Holders, pid: int, fd: int, held: Sequence[FileLock]) -> Mapping[FileLock, Mapping[int, int]]:
    """Find the processes whose descriptor of the file holds a lock: fdinfo of such a descriptor says so."""
    found: dict[FileLock, dict[int, int]] = {lock: {} for lock in held}
    if all(lock.kind == "POSIX" for lock in held):
        return found
    try:
        target = holders.files(pid)[fd]
    except (KeyError, OSError):
        return found
    for one in holders.of(target):
        if (one.pid, one.fd) == (pid, fd):
            continue
        try:
            own = {_identity(lock) for lock in parse_lock_line(holders.info(one.pid, one.fd))}
        except OSError:
            continue
        for lock in held:
            if _identity(lock) in own:
                found[lock].setdefault(one.pid, one.fd)
    return found


def _identity(lock: FileLock) -> tuple[str, str, str, int, int, int]:
    return lock.kind, lock.file, lock.access, lock.pid, lock.first, lock.last
