"""Text that CPython's sys.stdout and sys.stderr hold back, read from the memory of their process."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal

from hangdoc.cpython.objects import MOST_PENDING_BYTES, Cpython, members, pieces, type_name, type_of
from hangdoc.memory.image import Image, UnknownLayoutError, UnreadableError

TEXT, BUFFERED, RAW = "_io.TextIOWrapper", "_io.BufferedWriter", "_io.FileIO"
STREAMS: tuple[tuple[Literal["stdout", "stderr"], bytes, bytes], ...] = (
    ("stdout", b"stdout", b"__stdout__"),
    ("stderr", b"stderr", b"__stderr__"),
)
LARGEST_FD = 1 << 24
LARGEST_BUFFER_BYTES = 1 << 24
"""Of a BufferedWriter. Both arbitrary: more than anybody sets."""


@dataclass(frozen=True)
class PythonStream:
    """What goes to one descriptor. stream: "file" is any object that the program has opened itself.

    replaced_by: type of the object that stands in sys in its place, "" for none; marks: positions and addresses that
    move when anything is written, so that two equal readings are one moment; cut_bytes: so much before data was not
    read, because it is more than a mebibyte.
    """

    stream: Literal["stdout", "stderr", "file"]
    fd: int
    data: bytes
    replaced_by: str
    marks: tuple[int, ...] = ()
    cut_bytes: int = 0


@dataclass(frozen=True)
class _Text:
    """A TextIOWrapper: its own pending bytes, and what it writes to."""

    pending: bytes
    below: int
    marks: tuple[int, ...]


@dataclass(frozen=True)
class _Below:
    """A BufferedWriter, or a FileIO that keeps nothing. fd: negative when it is closed."""

    fd: int
    data: bytes
    marks: tuple[int, ...] = ()
    cut_bytes: int = 0


def python_streams(
    image: Image, python: Cpython, names: dict[bytes, int], others: tuple[int, ...] = ()
) -> tuple[PythonStream, ...]:
    """Read both streams, and others; UnreadableError when one of the two is not as CPython has it, or changes.

    others: text streams and buffers that the program has besides.

    A stream that was replaced by an object of another type (a Tee, a logger) is named, and the original one is read:
    what the object itself keeps cannot be known. Streams over one buffer are one: its text is counted once.
    """
    found: dict[int, PythonStream] = {}
    seen: set[int] = set()
    for stream, name, original in STREAMS:
        current = names.get(name, 0)
        kind = type_name(image, current) if current else "NoneType"
        replaced_by = "" if kind in {TEXT, "NoneType"} else kind
        for item in dict.fromkeys((current, names.get(original, 0))):
            if not item or item in seen or type_name(image, item) != TEXT:
                continue
            seen.add(item)
            text = _text(image, python, item)
            below = None if text is None else _below(image, text.below)
            if text is None or below is None:
                replaced_by = replaced_by or kind
            elif below.fd >= 0:
                data, marks = below.data + text.pending, below.marks + text.marks
                one = PythonStream(stream, below.fd, data, replaced_by, marks, below.cut_bytes)
                found[text.below] = _joined(found.get(text.below), one, below.data)
    for item in others:
        _add(image, python, item, found, seen)
    return tuple(found.values())


def _add(image: Image, python: Cpython, item: int, found: dict[int, PythonStream], seen: set[int]) -> None:
    """Add another text stream or buffer; one that is not as it should be has just been freed."""
    if item in seen:
        return
    try:
        text = _text(image, python, item) if type_name(image, item) == TEXT else _Text(b"", item, ())
        below = None if text is None else _below(image, text.below)
    except UnreadableError:
        return
    if text is None or below is None or below.fd < 0 or (item == text.below and item in found):
        return
    before = found.get(text.below)
    stream = "file" if before is None else before.stream
    one = PythonStream(stream, below.fd, below.data + text.pending, "", below.marks + text.marks, below.cut_bytes)
    found[text.below] = _joined(before, one, below.data)


def writer_types(image: Image, python: Cpython, names: dict[bytes, int]) -> tuple[int, dict[int, None]]:
    """Return one text stream of sys, and the types that it and its buffer are of; (0, none) where there is none."""
    kinds: dict[int, None] = {}
    example = 0
    for _, name, original in STREAMS:
        for item in (names.get(name, 0), names.get(original, 0)):
            if not item or type_name(image, item) != TEXT:
                continue
            example = item
            kinds[type_of(image, item)] = None
            text = _text(image, python, item)
            if text is not None and type_name(image, text.below) == BUFFERED:
                kinds[type_of(image, text.below)] = None
    return example, kinds


def _joined(before: PythonStream | None, one: PythonStream, shared: bytes) -> PythonStream:
    """Join two streams over one buffer: its text first, then what one of them still keeps."""
    if before is None or before.data == shared:
        return one
    if one.data == shared:
        return before
    raise UnknownLayoutError("two streams over one buffer both hold text: its order is not known", "")


def _text(image: Image, python: Cpython, item: int) -> _Text | None:
    """Read a TextIOWrapper; None for one that is detached or not open.

    textio (Modules/_io/textio.c, 3.9 to 3.14): ok, detached (int), chunk_size, buffer, ..., line_buffering,
    write_through, ..., finalizing (char); then, aligned: encodefunc, encoding_start_of_stream, decoded_chars,
    decoded_chars_used, pending_bytes, pending_bytes_count. Its type's table of members says where buffer,
    line_buffering, write_through and finalizing are. The count is what makes a misread impossible to miss.
    """
    at = members(image, item)
    buffer, last = at.get("buffer", 0), at.get("_finalizing", 0)
    flags = at.get("line_buffering", 0), at.get("write_through", 0)
    if not 32 <= buffer < min(flags) <= max(flags) < last < 512:
        raise UnknownLayoutError("text streams of this python are not as they are known", "")
    after = (last + 8) & ~7
    data = image.read(item, after + 48)
    ok, detached, chunk_bytes, below = struct.unpack_from("<iiqQ", data, buffer - 16)
    pending, count = struct.unpack_from("<Qq", data, after + 32)
    if ok not in {0, 1} or detached not in {0, 1} or any(data[flag] > 1 for flag in flags):
        raise UnknownLayoutError("text streams of this python are not as they are known", "")
    if not ok or detached or not below:
        return None
    if not (0 < chunk_bytes <= LARGEST_BUFFER_BYTES and 0 <= count <= MOST_PENDING_BYTES):
        raise UnknownLayoutError("text streams of this python are not as they are known", "")
    kept = pieces(image, python, pending) if pending else b""
    if len(kept) != count:
        raise UnreadableError("a stream changed while it was read", "")
    return _Text(kept, below, (pending, count))


def _below(image: Image, item: int) -> _Below | None:
    """Read what a text stream writes to; None when that is neither a BufferedWriter over a file nor a file itself."""
    kind = type_name(image, item)
    if kind == RAW:
        return _Below(_descriptor(image, item), b"")
    return _buffered(image, item) if kind == BUFFERED else None


def _buffered(image: Image, item: int) -> _Below | None:
    """Read a BufferedWriter.

    buffered (Modules/_io/bufferedio.c, 3.9 to 3.14): raw; ok, detached, readable, writable (int); finalizing (char);
    fast_closed_checks; abs_pos, buffer, pos, raw_pos, read_end, write_pos, write_end; lock, owner; buffer_size,
    buffer_mask. What is not written lies from write_pos to write_end, which is -1 when there is nothing.
    """
    at = members(image, item)
    raw_at = at.get("raw", 0)
    if raw_at < 16 or at.get("_finalizing") != raw_at + 24:
        raise UnknownLayoutError("buffers of this python are not as they are known", "")
    data = image.read(item, raw_at + 120)
    raw, ok, detached, _, writable = struct.unpack_from("<Q4i", data, raw_at)
    position_at = raw_at + 32
    absolute, buffer, position, _, read_end, start, end = struct.unpack_from("<qQ5q", data, position_at)
    size, mask = struct.unpack_from("<2q", data, raw_at + 104)
    if not ok or detached or not raw:
        return None
    as_known = (ok, detached, writable) == (1, 0, 1) and 0 < size <= LARGEST_BUFFER_BYTES and mask in {0, size - 1}
    if not as_known or absolute < -1 or read_end < -1 or end < -1 or not 0 <= position <= size:
        raise UnknownLayoutError("buffers of this python are not as they are known", "")
    if type_name(image, raw) != RAW:
        return None
    if not (end == -1 or 0 <= start <= end <= size):
        raise UnreadableError("a stream changed while it was read", "")
    cut = max(0, end - start - MOST_PENDING_BYTES)
    data = image.read(buffer + start + cut, end - start - cut) if end > start else b""
    return _Below(_descriptor(image, raw), data, (absolute, position, start, end), cut)


def _descriptor(image: Image, item: int) -> int:
    """Return the descriptor of a FileIO (fileio in Modules/_io/fileio.c: fd, an int, is its first field)."""
    (number,) = struct.unpack("<i", image.read(item + 16, 4))
    if not -1 <= number < LARGEST_FD:
        raise UnknownLayoutError("files of this python are not as they are known", "")
    return int(number)
