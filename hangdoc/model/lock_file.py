"""Lock files that threads ask for again and again, rather than sleeping in the kernel until they get them."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from hangdoc.model.link import LinkEnd
from hangdoc.model.reading import Reading

LockFileKind: TypeAlias = Literal["existence", "flock"]
"""existence: the file itself is the lock (torch's FileBaton, filelock's SoftFileLock), and outlives whoever made it;
flock: the kernel holds the lock and lets it go when its holder ends (filelock's FileLock, which tries and sleeps)."""


class LockFile(Struct, frozen=True, kw_only=True):
    """A lock file that a thread asks for.

    holders: processes that hold it: that have the file open, for "flock" with a lock on it; elsewhere: a holder may be
    where it cannot be seen, on another machine or in another container; quiet_s: since the newest file beside it was
    written, which a build does now and then.
    """

    tid: int
    kind: LockFileKind
    path: str
    holders: Reading[tuple[LinkEnd, ...]]
    elsewhere: bool
    quiet_s: Reading[float]


class LockFiles(Struct, frozen=True, tag="lock-files"):
    """The lock-files probe's reading of one process: those that exist. unnamed: threads that ask for one not found."""

    files: tuple[LockFile, ...]
    unnamed: tuple[int, ...] = ()
