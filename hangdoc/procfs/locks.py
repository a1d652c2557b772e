"""Parse /proc/locks: who holds a file lock, and who waits for it."""

from __future__ import annotations

from dataclasses import dataclass

from hangdoc.procfs.errors import refuse
from hangdoc.procfs.numbers import counter, text

FIELDS = 7
"""After the number and the arrow: kind, advisory, access, pid, device:inode, start, end (fs/locks.c)."""


NOWHERE = b"<none>:0"
"""What stands for the file of one who waits in open(2) for somebody's lease (lock_get_status: no file is open yet)."""


@dataclass(frozen=True, slots=True)
class FileLock:
    """One line of /proc/locks.

    number: lines of one lock and of those who wait for it share it; kind: "FLOCK", "POSIX", "OFDLCK", "LEASE";
    access: "READ" or "WRITE"; pid: 0 when the kernel names nobody (an open file description's lock); file:
    "major:minor:inode" as the kernel prints it, NOWHERE of whoever waits for a lease; first, last: the bytes that are
    locked, last is -1 to the file's end.
    """

    number: int
    waits: bool
    kind: str
    access: str
    pid: int
    file: str
    first: int = 0
    last: int = -1

    def stands_against(self, other: FileLock) -> bool:
        """Tell whether this lock has to go before the other can be taken: they meet in a file, and one of them writes.

        flock's and fcntl's locks know nothing of each other (flock(2)).

        >>> taken = FileLock(1, False, "POSIX", "READ", 7, "0:1:2", 0, 9)
        >>> wanted = FileLock(1, True, "OFDLCK", "WRITE", 8, "0:1:2", 9)
        >>> taken.stands_against(wanted), wanted.stands_against(taken)
        (True, False)
        """
        if self.waits or self.file != other.file or (self.kind == "FLOCK") != (other.kind == "FLOCK"):
            return False
        meets = (other.last < 0 or self.first <= other.last) and (self.last < 0 or other.first <= self.last)
        return meets and "WRITE" in {self.access, other.access}

    @property
    def inode(self) -> int:
        """The file's inode number."""
        return int(self.file.rpartition(":")[2])


def parse_locks(data: bytes) -> tuple[FileLock, ...]:
    r"""Read the table; a lock that a line waits for stands above it under the same number.

    >>> head = b"1: FLOCK  ADVISORY  WRITE 70 fe:00:12 0 EOF\n"
    >>> one, two = parse_locks(head + b"1:  -> FLOCK  ADVISORY  WRITE 71 fe:00:12 0 EOF\n")
    >>> (one.pid, one.waits), (two.pid, two.waits, two.inode)
    ((70, False), (71, True, 12))
    >>> parse_locks(b"2: -> LEASE  BREAKER   WRITE 71 <none>:0 0 EOF\n")[0].inode
    0
    """
    return tuple(_line(line) for line in data.splitlines() if line.strip())


def parse_lock_line(data: bytes) -> tuple[FileLock, ...]:
    r"""Read the "lock:" lines of an fdinfo file: the locks that this open file holds.

    >>> parse_lock_line(b"pos:\t0\nflags:\t02\nlock:\t1: FLOCK  ADVISORY  WRITE 70 fe:00:12 0 EOF\n")[0].kind
    'FLOCK'
    """
    return tuple(_line(line[5:]) for line in data.splitlines() if line.startswith(b"lock:"))


def _line(line: bytes) -> FileLock:
    words = line.split()
    waits = words[1:2] == [b"->"]
    fields = words[2:] if waits else words[1:]
    try:
        number, pid = counter(words[0].rstrip(b":")), fields[3]
        inode = counter(fields[4].rpartition(b":")[2])
        named = fields[4].count(b":") == 2 or fields[4] == NOWHERE
        if len(fields) < FIELDS or not named or inode < 0:
            refuse("locks", line)
        holder = 0 if pid.startswith(b"-") else counter(pid)
        first, last = counter(fields[5]), -1 if fields[6] == b"EOF" else counter(fields[6])
        return FileLock(number, waits, text(fields[0]), text(fields[2]), holder, text(fields[4]), first, last)
    except (IndexError, ValueError):
        refuse("locks", line)
