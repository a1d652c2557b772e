"""Opens what `hangdoc diagnose` is given: files, compressed or not, directories, standard input, never for ever."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from hangdoc.errors import HangdocError
from hangdoc.logs.encoding import is_utf8, text
from hangdoc.logs.packed import DAMAGED, MAGIC, Packing, Readable, packing_of, unpacked
from hangdoc.logs.unending import Unending
from hangdoc.model.reading import Missing

CHUNK_BYTES = 1 << 20
"""Read at a time: small enough for a processor's cache, 11 GB/s against 4.4 for 4 MiB where it was measured."""

STDIN = Path("-")

MOST_FILES, DEEPEST = 2_000, 5
"""Files and levels looked at below a directory. Arbitrary: 512 ranks with two streams each are 1,024 files."""


@dataclass(frozen=True)
class Source:
    """One log file. size_bytes: as stored; modified_wall_ns: 0 for standard input."""

    path: Path
    size_bytes: int
    modified_wall_ns: int

    @property
    def name(self) -> str:
        """How messages call it."""
        return "standard input" if self.path == STDIN else str(self.path)


def sources(paths: list[Path]) -> list[Source]:
    """Return every file that the paths name, those of a directory included; HangdocError for what is none."""
    found: list[Source] = []
    for path in paths:
        if path == STDIN:
            found.append(Source(STDIN, 0, 0))
            continue
        status = _status(path)
        if stat.S_ISDIR(status.st_mode):
            found += _of_directory(path)
        elif stat.S_ISREG(status.st_mode):
            found.append(Source(path, status.st_size, status.st_mtime_ns))
        else:
            raise HangdocError(
                f"{path} is no regular file", "give a file or a directory, or feed it in: hangdoc diagnose - < FILE"
            )
    return found


def _status(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except (OSError, ValueError) as error:
        raise HangdocError(f"{path} cannot be read: {_why(error)}", "check its name and its rights") from error


def _why(error: Exception) -> str:
    return str(error.strerror) if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__


_LOG_NAME = re.compile(
    r"(?:^|[._-])(?:log|out|err|txt|stdout|stderr|nohup|json|hangtrace|pickle|pkl)(?:[._-]|$)|^\d+$|trace_rank_?\d+$",
    re.IGNORECASE,
)
"""Names of files in a directory that may be logs: server.log.2.gz, nohup.out, stderr, rank3.txt, or what torch's flight
recorder writes: nccl_trace_rank_0."""


def _of_directory(path: Path) -> list[Source]:
    """Return the logs below a directory, each file once: links to them (kubelet makes some) are followed."""
    found: dict[tuple[int, int], Source] = {}
    for directory, below, files in os.walk(path):
        depth = len(Path(directory).relative_to(path).parts)
        below[:] = sorted(name for name in below if not name.startswith(".")) if depth < DEEPEST else []
        every = [Path(directory) / name for name in sorted(files) if _LOG_NAME.search(name)]
        for file in sorted(every, key=Path.is_symlink):
            if len(found) < MOST_FILES and file.is_file():
                status = _status(file)
                name = (status.st_dev, status.st_ino)
                found.setdefault(name, Source(file, status.st_size, status.st_mtime_ns))
    if not found:
        raise HangdocError(
            f"{path} has no log files", "give the directory of *.log, *.out or *.txt files, or the files"
        )
    return list(found.values())


def pieces(source: Source, lacks: list[Missing] | None = None) -> Iterator[bytes]:
    """Yield the text of a file, unpacked, as UTF-8; lacks: takes what could not be read of it.

    HangdocError where nothing could.
    """
    return text(stored(source, lacks))


def stored(source: Source, lacks: list[Missing] | None = None) -> Iterator[bytes]:
    """Yield the bytes of a file as they are, but unpacked; what a cut or broken file still gives."""
    lacks = [] if lacks is None else lacks
    with ExitStack() as stack:
        file = stack.enter_context(_opened(source))
        given: Readable = file
        if source.path == STDIN and not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            given = stack.enter_context(Unending(file, lacks))
        head = _first(given, source)
        packing = packing_of(head)
        if packing is None:
            yield head
            yield from _all_of(file, given, source)
        else:
            yield from _unpacked(_Rest(head, given), packing, source, lacks)


class _Rest:
    """A file that begins with bytes which were read already."""

    def __init__(self, head: bytes, file: Readable) -> None:
        self._head = head
        self._file = file

    def read(self, size: int = -1, /) -> bytes:
        """Return at most size bytes."""
        if not self._head:
            return self._file.read(CHUNK_BYTES if size < 0 else size) or b""
        size = len(self._head) if size < 0 else size
        taken, self._head = self._head[:size], self._head[size:]
        return taken

    def seekable(self) -> bool:
        """Say that it cannot be wound back."""
        return False


def _unpacked(rest: _Rest, packing: Packing, source: Source, lacks: list[Missing]) -> Iterator[bytes]:
    came = False
    try:
        for piece in unpacked(rest, packing, CHUNK_BYTES):
            came = True
            yield piece
    except DAMAGED as error:
        if not came:
            raise HangdocError(f"{source.name} cannot be unpacked: {_why(error)}", "unpack it by hand") from error
        what = "is cut" if isinstance(error, EOFError) else f"is damaged ({_why(error)})"
        lacks.append(lack(f"{source.name} {what}: what follows in it was not read", "get the whole file"))


def lack(detail: str, remedy: str) -> Missing:
    """Return what was not read of the inputs, and what to do."""
    return Missing("input", "failed", detail, remedy)


def _opened(source: Source) -> FileIO:
    if source.path == STDIN:
        if sys.stdin is None:
            raise HangdocError("standard input is closed", "give a file")
        return FileIO(os.dup(sys.stdin.fileno()), "rb")
    try:
        descriptor = os.open(source.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise HangdocError(f"{source.path} cannot be read: {_why(error)}", "run hangdoc with rights to it") from error
    return FileIO(descriptor, "rb")


def _first(file: Readable, source: Source) -> bytes:
    head = b""
    while len(head) < max(map(len, MAGIC)) and (piece := _next(file, source)):
        head += piece
    return head


def _all_of(file: FileIO, given: Readable, source: Source) -> Iterator[bytes]:
    """Yield what is there now: a log that grows while it is read must not be read for ever."""
    left = source.size_bytes if source.path != STDIN else sys.maxsize
    while left > 0 and (piece := _next(given, source)):
        left -= len(piece)
        yield piece
        if not piece.strip(b"\0"):
            left -= _skipped_hole(file)


def _skipped_hole(file: FileIO) -> int:
    """Go to where data follow, and return how many bytes of nothing were passed: a hole may have terabytes."""
    try:
        begin = file.tell()
        return os.lseek(file.fileno(), begin, os.SEEK_DATA) - begin
    except OSError as error:
        return sys.maxsize if error.errno == errno.ENXIO else 0


def _next(file: Readable, source: Source) -> bytes:
    try:
        return file.read(CHUNK_BYTES) or b""
    except OSError as error:
        raise HangdocError(f"{source.name} cannot be read: {_why(error)}", "copy it to a local disk") from error


def last_bytes(source: Source, size: int) -> bytes:
    """Return the end of a file that is neither packed nor in another encoding; nothing of any other."""
    if source.path == STDIN or source.size_bytes < size:
        return b""
    with _opened(source) as file:
        head = file.read(CHUNK_BYTES)
        if packing_of(head) is not None or not is_utf8(head):
            return b""
        file.seek(source.size_bytes - size)
        return file.read(size)
