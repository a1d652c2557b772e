"""Standard output, and what is said when it is closed, full, or nobody reads it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from errno import EBADF, EPIPE
from io import TextIOWrapper
from os import strerror
from typing import TextIO

from hangdoc.errors import HangdocError


@contextmanager
def standard_output() -> Iterator[TextIO]:
    """Yield standard output; HangdocError (exit 2) for what it does not take, BrokenPipeError when nobody reads."""
    if sys.stdout is None:  # an earlier part found that nobody reads
        raise BrokenPipeError(EPIPE, strerror(EPIPE))
    try:
        yield sys.stdout
    except BrokenPipeError:
        # Python flushes once more at its exit and would complain about the pipe again.
        sys.stdout = None
        raise
    except OSError as error:
        sys.stdout = None  # the flush at exit would fail once more, and make the exit code 120
        why = "standard output is closed" if error.errno == EBADF else error.strerror
        raise HangdocError(f"the result cannot be written: {why}", "send it somewhere else") from error


def emit_bytes(chunks: Iterable[bytes]) -> None:
    """Write a result that comes in pieces and is no text of hangdoc's; errors as for standard_output."""
    for chunk in chunks:
        with standard_output() as output:
            if isinstance(output, TextIOWrapper):
                output.buffer.write(chunk)
            else:  # closed: refuses
                output.write(chunk.decode(errors="replace"))
    with standard_output() as output:
        output.flush()
