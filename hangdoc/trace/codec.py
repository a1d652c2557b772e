"""Lines of a trace to bytes and back: JSON Lines in one zstd frame, flushed after every line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, get_args

import msgspec
import zstandard

from hangdoc.errors import HangdocError
from hangdoc.trace.limits import INPUT_SLICE_BYTES, MAX_LINE_BYTES, MAX_TRACE_BYTES, MAX_WINDOW_BYTES
from hangdoc.trace.records import DamagedError, Line

MAGIC = zstandard.FRAME_HEADER
"""The first four bytes of a zstd frame."""

LIVE_LEVEL = 3
"""zstd's own default: while recording, the time counts against the probes' budget."""

SMALL_LEVEL = 19
"""For a trace that is written once and kept: the highest level with an 8 MiB window."""

KINDS = frozenset(str(record.__struct_config__.tag) for record in get_args(Line))
"""The types of records that there are."""

_ENCODER = msgspec.json.Encoder()
_DECODER: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


class Packer:
    """Lines in, bytes out; what it has given out can be read back whatever happens later."""

    def __init__(self, level: int = LIVE_LEVEL) -> None:
        self._zstd = zstandard.ZstdCompressor(level=level, write_checksum=True).compressobj()
        self._unpacked_bytes = 0

    def pack(self, line: Line) -> bytes:
        """Return the bytes of one line, ready to be written."""
        text = _readable(line)
        if self._unpacked_bytes + len(text) > MAX_TRACE_BYTES or len(text) > MAX_LINE_BYTES:
            raise HangdocError(
                f"the recording is full: a trace holds {MAX_TRACE_BYTES >> 20} MiB unpacked, a line "
                f"{MAX_LINE_BYTES >> 20} MiB",
                "record for a shorter time or with a longer --interval; what was written can be read",
            )
        self._unpacked_bytes += len(text)
        return self._zstd.compress(text) + self._zstd.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)

    def end(self) -> bytes:
        """Return the bytes that close the frame."""
        return self._zstd.flush(zstandard.COMPRESSOBJ_FLUSH_FINISH)


def to_json(line: Line) -> bytes:
    """Return one line as JSON with its line feed."""
    return _ENCODER.encode(line) + b"\n"


def _readable(line: Line) -> bytes:
    """Return the line as JSON that a reader takes: one value of a careless probe would cost the whole recording."""
    try:
        text = to_json(line)
        from_json(text)
    except (DamagedError, UnicodeEncodeError, OverflowError, TypeError) as error:
        message = f"a reading cannot be recorded: {error}"
        raise HangdocError(message, "this is a fault of the probe that took it") from error
    return text


def from_json(text: bytes) -> Line:
    """Return the record of one line."""
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedError(str(error)) from error


def to_mapping(text: bytes) -> dict[str, Any]:
    """Return one line of any schema as plain data, for migrate."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedError(str(error)) from error


def from_mapping(record: dict[str, Any]) -> Line:
    """Return the record of plain data of the present schema."""
    try:
        line: Line = msgspec.convert(record, Line)
    except msgspec.ValidationError as error:
        raise DamagedError(str(error)) from error
    return line


def is_of_unknown_kind(text: bytes) -> bool:
    """Say whether a line is a whole record, of a kind that has no name here."""
    try:
        kind = to_mapping(text).get("type")
    except DamagedError:
        return False
    return isinstance(kind, str) and kind not in KINDS


def unpack(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the whole lines of a file, without their line feed; a line that the end of the file cuts is left out."""
    rest = bytearray()
    total_bytes = 0
    for text in _unpacked(chunks):
        total_bytes += len(text)
        if total_bytes > MAX_TRACE_BYTES:
            raise DamagedError(f"it unpacks to more than {MAX_TRACE_BYTES >> 20} MiB")
        *ends, begin = text.split(b"\n")
        for end in ends:
            yield bytes(rest + end)
            rest.clear()
        rest += begin
        if len(rest) > MAX_LINE_BYTES:
            raise DamagedError(f"it has a line of more than {MAX_LINE_BYTES >> 20} MiB")


def _unpacked(chunks: Iterable[bytes]) -> Iterator[bytes]:
    zstd = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).decompressobj()
    for chunk in chunks:
        for start in range(0, len(chunk), INPUT_SLICE_BYTES):
            if zstd.eof:
                raise DamagedError("bytes follow the end of the trace")
            try:
                yield zstd.decompress(chunk[start : start + INPUT_SLICE_BYTES])
            except zstandard.ZstdError as error:
                raise DamagedError(str(error)) from error
    if zstd.eof and zstd.unused_data:
        raise DamagedError("bytes follow the end of the trace")
