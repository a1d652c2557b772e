"""Reads a trace's file: all of it, or up to where it was cut; anything else ends in one clear line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeAlias

from hangdoc.errors import HangdocError
from hangdoc.regular import NotRegularError, open_regular
from hangdoc.trace import codec, migrate
from hangdoc.trace.records import SCHEMA, Assembly, DamagedError, Header, Line, Trace, UnknownLine

_CHUNK_BYTES = 64 << 10
"""Read at a time. Arbitrary."""

_NOT_A_TRACE = "traces end in .hangtrace and are written by `hangdoc record`"

Decode: TypeAlias = Callable[[bytes], Line]


def read(source: Path | str | bytes) -> Trace:
    """Return the trace in a file or in bytes; HangdocError (exit 2) when it is none that this hangdoc can read.

    A file that was cut is read up to the cut and has complete=False, as long as its header is whole.
    """
    if isinstance(source, bytes):
        return _read_chunks([source], "the input")
    with _open(Path(source)) as file:
        return _read_chunks(chunks_of(file, str(source)), str(source))


def _open(path: Path) -> BinaryIO:
    try:
        return open_regular(path)
    except NotRegularError as error:
        raise HangdocError(f"{path} is not a hangdoc trace: it is not a regular file", _NOT_A_TRACE) from error
    except (OSError, ValueError) as error:
        raise HangdocError(f"{path} cannot be read: {_reason(error)}") from error


def chunks_of(file: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield the bytes of a file."""
    while True:
        try:
            chunk = file.read(_CHUNK_BYTES)
        except OSError as error:
            raise HangdocError(f"{name} cannot be read: {_reason(error)}") from error
        if not chunk:
            return
        yield chunk


def read_header(chunks: Iterable[bytes], name: str) -> tuple[Header, Iterator[Line | UnknownLine]]:
    """Return the header and the lines that follow it, not yet read; name: for the error's sentence."""
    lines = codec.unpack(_checked_magic(chunks, name))
    try:
        first = next(lines, None)
        if first is None:
            raise HangdocError(
                f"{name} has no whole header: it was cut too early, or is no hangdoc trace", _NOT_A_TRACE
            )
        decode = _decoder(codec.to_mapping(first), name)
    except DamagedError as error:
        raise HangdocError(f"{name} is not a hangdoc trace: {error}", _NOT_A_TRACE) from error
    try:
        header = decode(first)
    except DamagedError as error:
        raise HangdocError(f"{name} is damaged in its header: {error}") from error
    if not isinstance(header, Header):
        raise HangdocError(f"{name} is damaged: it does not begin with a header")
    return header, (_known(decode, line) for line in lines)


def _known(decode: Decode, line: bytes) -> Line | UnknownLine:
    try:
        return decode(line)
    except DamagedError:
        if codec.is_of_unknown_kind(line):
            return UnknownLine()
        raise


def _checked_magic(chunks: Iterable[bytes], name: str) -> Iterator[bytes]:
    begin = b""
    rest = iter(chunks)
    for chunk in rest:
        begin += chunk
        if len(begin) >= len(codec.MAGIC):
            break
    if not begin:
        raise HangdocError(f"{name} is empty: it is not a hangdoc trace", _NOT_A_TRACE)
    if not begin.startswith(codec.MAGIC):
        raise HangdocError(f"{name} is not a hangdoc trace", _NOT_A_TRACE)
    yield begin
    yield from rest


def _decoder(first: dict[str, object], name: str) -> Decode:
    """Return what turns a line of this file into a record; first: its first line, whatever the schema."""
    schema = first.get("schema")
    if first.get("type") != "header" or not isinstance(schema, int):
        raise DamagedError("it does not begin with a header")
    if schema == SCHEMA:
        return codec.from_json
    if schema > SCHEMA:
        message = f"{name} was written by a newer hangdoc (schema {schema}); this one reads up to {SCHEMA}"
        raise HangdocError(message, "update hangdoc: pipx upgrade hangdoc")
    if not migrate.can_upgrade(schema, SCHEMA):
        raise DamagedError(f"there is no schema {schema}")
    return lambda line: codec.from_mapping(migrate.upgrade(codec.to_mapping(line), schema, SCHEMA))


def _read_chunks(chunks: Iterable[bytes], name: str) -> Trace:
    header, lines = read_header(chunks, name)
    assembly = Assembly()
    try:
        for line in lines:
            assembly.take(line)
    except DamagedError as error:
        raise HangdocError(f"{name} is damaged after {len(assembly.snapshots)} snapshots: {error}") from error
    except MemoryError as error:
        assembly = Assembly()  # room for the message
        raise HangdocError(f"{name} does not fit into the memory there is", "replay it on a larger machine") from error
    return assembly.trace(header)


def _reason(error: OSError | ValueError) -> str:
    return str(error.strerror if isinstance(error, OSError) else error)
