"""The file that a report goes to: opened before anything takes time, taken away again when nothing came of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from hangdoc.errors import HangdocError


@dataclass(frozen=True)
class ReportFile:
    """A file that can be written."""

    path: Path
    descriptor: int

    def write(self, words: str) -> None:
        """Replace what it holds; HangdocError (exit 2) when the disk does not take it."""
        try:
            if S_ISREG(os.fstat(self.descriptor).st_mode):
                os.ftruncate(self.descriptor, 0)
            with os.fdopen(self.descriptor, "wb", closefd=False) as file:
                file.write(words.encode())
        except OSError as error:
            raise _write_error(self.path, error) from error


@contextmanager
def report_file(path: Path) -> Iterator[ReportFile]:
    """Open a file; HangdocError (exit 2) when it cannot be written. What was in it stays until it is written to."""
    is_new = not os.path.lexists(path)
    try:
        # O_NONBLOCK: a FIFO that nobody reads is an error, not a wait. No O_TRUNC: an old report stays until then.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except (OSError, ValueError) as error:
        raise _write_error(path, error) from error
    os.set_blocking(descriptor, True)
    try:
        yield ReportFile(path, descriptor)
    except BaseException:
        if is_new:
            path.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def _write_error(path: Path, error: OSError | ValueError) -> HangdocError:
    reason = error.strerror if isinstance(error, OSError) else error
    return HangdocError(f"{path} cannot be written: {reason}", "choose another file, or free some space")
