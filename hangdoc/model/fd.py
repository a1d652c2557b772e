"""Open files of a process: where its output goes and whether it arrived."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from hangdoc.model.reading import Reading

FdKind: TypeAlias = Literal["file", "pipe", "tty", "socket", "null", "anon", "other"]


PIPE_BUF_BYTES = 4096
"""A write of up to this many bytes into a pipe is atomic on Linux (PIPE_BUF in include/uapi/linux/limits.h)."""


class PipeFill(Struct, frozen=True, array_like=True):
    """Bytes queued in a pipe (FIONREAD) and its capacity (F_GETPIPE_SZ)."""

    queued_bytes: int
    capacity_bytes: int

    @property
    def is_full(self) -> bool:
        """Whether a write may wait: one of up to PIPE_BUF bytes goes in whole or not, so that less may stay free."""
        return self.queued_bytes > self.capacity_bytes - PIPE_BUF_BYTES


class OpenFile(Struct, frozen=True, kw_only=True):
    """One descriptor.

    target: what /proc/PID/fd/N points at ("pipe:[123]", a path); access: "r", "w" or "rw";
    size_bytes, modified_wall_ns, deleted: of a regular file; pipe: of a pipe whose fill could be asked for.
    """

    fd: int
    kind: FdKind
    target: str
    access: str
    append: bool = False
    position: Reading[int]
    size_bytes: Reading[int]
    modified_wall_ns: Reading[int]
    deleted: bool = False
    pipe: Reading[PipeFill]


class OpenFiles(Struct, frozen=True, tag="fds"):
    """The fds probe's reading of one process.

    complete: all descriptors are listed; otherwise only 1, 2 and the log files.
    nvidia: open /dev/nvidia* paths, sorted (an unreadable list is a Missing sample, never an empty tuple);
    None when this round did not look at all descriptors.
    """

    complete: bool
    files: tuple[OpenFile, ...]
    nvidia: tuple[str, ...] | None
