"""Opens what `hangdoc diagnose` is given: files, compressed or not, directories, standard input, never for ever."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import select
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import zstandard

from hangdoc.errors import HangdocError

CHUNK_BYTES = 1 << 20
"""Read at a time: small enough for a processor's cache, 11 GB/s against 4.4 for 4 MiB where it was measured."""

STDIN = Path("-")

QUIET_INPUT_S = 30.0
"""How long standard input may give nothing before what came so far counts as all: nobody waits for ever for a
`tail -f`. Arbitrary."""

MOST_FILES, DEEPEST = 2_000, 5
"""Files and levels looked at below a directory. Arbitrary: 512 ranks with two streams each are 1,024 files."""

_PACKED = {b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst", b"BZh": "bz2", b"\xfd7zXZ": "xz"}
_LARGEST_WINDOW_BYTES = 128 << 20
"""zstd's --long=27, its largest by default."""

_DAMAGED = (EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError, ValueError)
"""What unpacking a cut or broken file raises."""


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
    r"(?:^|[._-])(?:log|out|err|txt|stdout|stderr|nohup|json|hangtrace)(?:[._-]|$)|^\d+$", re.IGNORECASE
)
"""Names of files in a directory that may be logs: server.log.2.gz, nohup.out, stderr, rank3.txt."""


def _of_directory(path: Path) -> list[Source]:
    found: list[Source] = []
    for directory, below, files in os.walk(path):
        depth = len(Path(directory).relative_to(path).parts)
        below[:] = sorted(name for name in below if not name.startswith(".")) if depth < DEEPEST else []
        for name in sorted(files):
            file = Path(directory) / name
            if _LOG_NAME.search(name) and not file.is_symlink() and file.is_file() and len(found) < MOST_FILES:
                status = _status(file)
                found.append(Source(file, status.st_size, status.st_mtime_ns))
    if not found:
        raise HangdocError(
            f"{path} has no log files", "give the directory of *.log, *.out or *.txt files, or the files"
        )
    return found


def pieces(source: Source) -> Iterator[bytes]:
    """Yield the bytes of a file, unpacked; what a cut or broken file still gives, at least one piece of it."""
    with ExitStack() as stack:
        file = stack.enter_context(_opened(source))
        head = _first(file, source)
        packed = next((kind for magic, kind in _PACKED.items() if head.startswith(magic)), "")
        if not packed:
            yield head
            yield from _all_of(file, source)
            return
        yield from _unpacked(_Rest(head, file), packed, source)


class _Rest:
    """A file that begins with bytes which were read already."""

    def __init__(self, head: bytes, file: BinaryIO) -> None:
        self._head = head
        self._file = file

    def read(self, size: int = -1) -> bytes:
        """Return at most size bytes."""
        if not self._head:
            return _read(self._file, CHUNK_BYTES if size < 0 else size)
        size = len(self._head) if size < 0 else size
        taken, self._head = self._head[:size], self._head[size:]
        return taken

    def seekable(self) -> bool:
        """Say that it cannot be wound back."""
        return False


def _unpacked(rest: _Rest, packed: str, source: Source) -> Iterator[bytes]:
    came = False
    try:
        file = _unpacker(rest, packed)
        while piece := file.read1(CHUNK_BYTES):  # read would lose what came before the cut
            came = True
            yield piece
    except _DAMAGED as error:
        if not came:
            raise HangdocError(f"{source.name} cannot be unpacked: {_why(error)}", "unpack it by hand") from error


class _Unpacker(Protocol):
    def read1(self, size: int, /) -> bytes: ...


def _unpacker(rest: _Rest, packed: str) -> _Unpacker:
    file = cast("BinaryIO", rest)
    if packed == "gz":
        return gzip.GzipFile(fileobj=file, mode="rb")
    if packed == "bz2":
        return bz2.BZ2File(file)
    if packed == "xz":
        return lzma.LZMAFile(file)
    decompressor = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW_BYTES)
    return cast("_Unpacker", decompressor.stream_reader(file, read_across_frames=True))


def _opened(source: Source) -> BinaryIO:
    if source.path == STDIN:
        if sys.stdin is None:
            raise HangdocError("standard input is closed", "give a file")
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0)
    try:
        descriptor = os.open(source.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise HangdocError(f"{source.path} cannot be read: {_why(error)}", "run hangdoc with rights to it") from error
    return os.fdopen(descriptor, "rb", buffering=0)


def _first(file: BinaryIO, source: Source) -> bytes:
    head = b""
    while len(head) < len(b"\xfd7zXZ") and (piece := _next(file, source)):
        head += piece
    return head


def _all_of(file: BinaryIO, source: Source) -> Iterator[bytes]:
    """Yield what is there now: a log that grows while it is read must not be read for ever."""
    left = source.size_bytes if source.path != STDIN else sys.maxsize
    while left > 0 and (piece := _next(file, source)):
        left -= len(piece)
        yield piece


def _next(file: BinaryIO, source: Source) -> bytes:
    try:
        return _read(file, CHUNK_BYTES)
    except OSError as error:
        raise HangdocError(f"{source.name} cannot be read: {_why(error)}", "copy it to a local disk") from error


def _read(file: BinaryIO, size: int) -> bytes:
    """Read; a pipe or a terminal that gives nothing for a while counts as ended."""
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        poll = select.poll()
        poll.register(file, select.POLLIN)
        if not poll.poll(QUIET_INPUT_S * 1000):
            return b""
    return file.read(size) or b""


def last_bytes(source: Source, size: int) -> bytes:
    """Return the end of a file that is not packed; nothing of any other."""
    if source.path == STDIN or source.size_bytes < size:
        return b""
    with _opened(source) as file:
        if file.read(5).startswith(tuple(_PACKED)):
            return b""
        file.seek(source.size_bytes - size)
        return file.read(size)
