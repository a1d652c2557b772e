"""Writes a trace's file while it is recorded: private, redacted, readable up to the last round whatever happens."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from hangdoc.errors import HangdocError
from hangdoc.model.snapshot import Snapshot
from hangdoc.model.stack import Stack
from hangdoc.trace import reader
from hangdoc.trace.codec import LIVE_LEVEL, SMALL_LEVEL, Packer
from hangdoc.trace.records import EndLine, Header, Line, SnapshotLine, Trace, lines_of, stack_lines, stacks_needed
from hangdoc.trace.redact import Redactor, redact

PRIVATE_MODE = 0o600
"""Only the owner reads a trace: redacted, it still shows what runs on a machine."""

_OF_THE_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.ESTALE})
"""What a disk says that is full, over its quota or limit, read-only, broken, or gone from the network."""


class DiskError(HangdocError):
    """The disk does not take what is written: nothing is wrong with how hangdoc was called."""


class Writer:
    """A trace's file being recorded; each record is redacted before its bytes leave, unless its header says "none".

        with Writer.open(path, header) as writer:
            writer.add(snapshot, builder.stacks)

    Leaving the block writes the end record, unless an exception (other than Ctrl-C) ended it. An I/O error is a
    HangdocError with the path; what was written before stays readable.
    """

    def __init__(self, path: Path, descriptor: int, level: int, redactor: Redactor | None) -> None:
        self.path = path
        self._descriptor = descriptor
        self._packer = Packer(level)
        self._redactor = redactor
        self._stacks = 0
        self._snapshots = 0
        self._broken = False

    @classmethod
    def open(cls, path: Path | str, header: Header, level: int = LIVE_LEVEL) -> Self:
        """Create the file and write the header; an existing file is replaced only if it is empty or a trace."""
        redactor = None if header.redaction == "none" else Redactor()
        writer = cls(Path(path), create(Path(path)), level, redactor)
        try:
            writer._write(header)
        except BaseException:
            writer._close_descriptor()
            raise
        return writer

    def add(self, snapshot: Snapshot, stacks: Sequence[Stack]) -> None:
        """Append one round, after those entries of the table of stacks that it is the first to need."""
        for line in stack_lines(stacks, self._stacks, stacks_needed(snapshot)):
            self._write(line)
            self._stacks += 1
        self._write(SnapshotLine(snapshot))
        self._snapshots += 1

    def close(self, *, durable: bool = False) -> None:
        """Write the end record and close the file. Does nothing the second time.

        durable: return only when the disk has it, not the kernel alone.
        """
        if self._descriptor < 0:
            return
        try:
            if not self._broken:
                self._write(EndLine(self._snapshots))
                self._write_bytes(self._packer.end())
                if durable:
                    _sync(self._descriptor, self.path)
        finally:
            self._close_descriptor()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._broken = self._broken or not (kind is None or issubclass(kind, KeyboardInterrupt))
        self.close()

    def _write(self, line: Line) -> None:
        if self._broken:
            raise HangdocError(f"{self.path} cannot be written: an earlier write failed")
        kept = line if self._redactor is None else self._redactor.line(line)
        self._write_bytes(self._packer.pack(kept))

    def _write_bytes(self, data: bytes) -> None:
        try:
            _write_all(self._descriptor, data, self.path)
        except HangdocError:
            self._broken = True
            raise

    def _close_descriptor(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        _close(descriptor, self.path)


def write(path: Path | str, trace: Trace) -> None:
    """Write a whole trace, redacted and as small as it gets; an existing file as in Writer.open."""
    data = encode(redact(trace))
    descriptor = create(Path(path))
    try:
        _write_all(descriptor, data, Path(path))
    finally:
        _close(descriptor, Path(path))


def encode(trace: Trace, level: int = SMALL_LEVEL) -> bytes:
    """Return the bytes of a trace's file, unredacted; reader.read takes them back."""
    packer = Packer(level)
    return b"".join(map(packer.pack, lines_of(trace))) + packer.end()


def create(path: Path) -> int:
    """Create a private file for a trace, or empty the one there if it is a trace or empty; its descriptor."""
    try:
        return _create(path)
    except (OSError, ValueError) as error:
        raise _write_error(path, error) from error


def _create(path: Path) -> int:
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, PRIVATE_MODE)
    except FileExistsError:
        descriptor = os.open(path, flags)
    try:
        _lock(descriptor, path)
        _refuse_other_content(descriptor, path)
        os.fchmod(descriptor, PRIVATE_MODE)
        os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _lock(descriptor: int, path: Path) -> None:
    """Keep a second recording off the file; a file system that knows no locks goes without."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno == errno.EWOULDBLOCK:
            raise HangdocError(f"{path} is being recorded by another hangdoc", "choose another file") from error


def _refuse_other_content(descriptor: int, path: Path) -> None:
    """Raise unless the file is empty or a trace: nobody wants to lose a log to a slip in `-o`."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise HangdocError(f"{path} is not a regular file: no trace can be written to it", "choose another file")
    if status.st_size == 0:
        return
    with open(descriptor, "rb", closefd=False) as file:
        try:
            reader.read_header(reader.chunks_of(file, str(path)), str(path))
        except HangdocError as error:
            message = f"{path} exists and is not a trace of this hangdoc: it is left as it is"
            raise HangdocError(message, "choose another file, or remove it") from error
    os.lseek(descriptor, 0, os.SEEK_SET)


def _write_all(descriptor: int, data: bytes, path: Path) -> None:
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError as error:
        raise _write_error(path, error) from error


def _sync(descriptor: int, path: Path) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise _write_error(path, error) from error


def _close(descriptor: int, path: Path) -> None:
    try:
        os.close(descriptor)
    except OSError as error:
        raise _write_error(path, error) from error


def _write_error(path: Path, error: OSError | ValueError) -> HangdocError:
    reason = error.strerror if isinstance(error, OSError) else error  # ValueError: a name with a null byte
    kind = DiskError if isinstance(error, OSError) and error.errno in _OF_THE_DISK else HangdocError
    return kind(
        f"{path} cannot be written: {reason}",
        "choose another file, or free some space; what was written before can be read",
    )
