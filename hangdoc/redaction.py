"""Files redacted after the fact: a log as text, an older trace as a trace, each beside its input or to a file."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from hangdoc.errors import HangdocError
from hangdoc.logs.recognise import kind_of
from hangdoc.logs.sources import STDIN, Source, pieces, sources
from hangdoc.trace.log_text import LogRedactor, redacted
from hangdoc.trace.reader import read
from hangdoc.trace.redact import Redactor, redact_with
from hangdoc.trace.writer import PRIVATE_MODE, encode

STDOUT = Path("-")
_PACKED = frozenset({".gz", ".zst", ".bz2", ".xz"})
_TRACE_BEGINS = b'{"type":"header"'


@dataclass(frozen=True)
class Wishes:
    """output: where to, None for beside the input; also: words that go as well."""

    output: Path | None
    also: tuple[str, ...]


@dataclass(frozen=True)
class Redacted:
    """One file that was redacted. tokens: how many different texts became tokens."""

    source: Path
    target: Path
    tokens: int

    @property
    def is_standard_output(self) -> bool:
        """Whether the result went to standard output: then nothing else may."""
        return self.target == STDOUT


Printing: TypeAlias = Callable[[Iterable[bytes]], None]
"""Writes pieces to standard output; HangdocError or BrokenPipeError when that does not take them."""


def redact_all(paths: Sequence[Path], wishes: Wishes, to_output: Printing) -> list[Redacted]:
    """Redact each file; HangdocError when one cannot be read or written, and the ones before it stay."""
    for path in paths:
        if path.is_dir():
            raise HangdocError(f"{path} is a directory", f"give its files: hangdoc redact {path}/*")
    return [_redact(source, wishes, to_output) for source in sources(list(paths))]


def _redact(source: Source, wishes: Wishes, to_output: Printing) -> Redacted:
    target = wishes.output or (STDOUT if source.path == STDIN else _beside(source.path))
    found = pieces(source)
    first = next(found, b"")
    if not first:
        raise HangdocError(f"{source.name} is empty", "give a log or a trace")
    if source.path != STDIN and first.startswith(_TRACE_BEGINS):  # a trace is packed, and pieces come unpacked
        return _redact_trace(source, target, to_output)
    if kind_of(first) == "binary":
        raise HangdocError(f"{source.name} is neither a log nor a trace: it is binary", "give a log or a trace")
    redactor = LogRedactor((*wishes.also, *_own_names()))
    _write(target, redacted(chain([first], found), redactor), to_output)
    return Redacted(source.path, target, redactor.tokens.count)


def _redact_trace(source: Source, target: Path, to_output: Printing) -> Redacted:
    redactor = Redactor()
    trace = redact_with(redactor, read(source.path))
    _write(target, [encode(trace)], to_output)
    return Redacted(source.path, target, redactor.tokens.count)


def _beside(path: Path) -> Path:
    """Return "server.redacted.log" for "server.log" and "server.log.gz"."""
    plain = path.with_suffix("") if path.suffix in _PACKED else path
    return plain.with_name(f"{plain.stem}.redacted{plain.suffix}")


def _own_names() -> Iterator[str]:
    """Yield what this machine and its user are called, as far as that is no word of everybody's logs."""
    host = socket.gethostname()
    if any(sign in host for sign in "-0123456789") and len(host) > len("rank0"):
        yield from (host, host.split(".", 1)[0])
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a user without an entry
        return
    if user not in ("root", "ubuntu", "user", "runner"):
        yield user


def _write(target: Path, chunks: Iterable[bytes], to_output: Printing) -> None:
    if target == STDOUT:
        to_output(chunks)
        return
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_MODE)
    except FileExistsError as error:
        raise HangdocError(f"{target} exists: it is left as it is", "remove it, or choose another with -o") from error
    except (OSError, ValueError) as error:
        raise _write_error(target, error) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(chunks)
    except BaseException as error:
        target.unlink(missing_ok=True)  # half a log would pass for a whole one
        if isinstance(error, OSError):
            raise _write_error(target, error) from error
        raise


def _write_error(target: Path, error: OSError | ValueError) -> HangdocError:
    reason = error.strerror if isinstance(error, OSError) else error
    return HangdocError(f"{target} cannot be written: {reason}", "choose another file with -o, or free some space")
