"""Reports that are handed on: the HTML file, opened before anything takes time, and what goes to standard output."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING

import typer

from hangdoc.cli.failure import say
from hangdoc.cli.output import emit
from hangdoc.errors import HangdocError
from hangdoc.model.diagnosis import Diagnosis, TargetKind

if TYPE_CHECKING:
    from hangdoc.features.baseline import Baseline
    from hangdoc.trace.records import Trace

STDOUT = Path("-")


@dataclass(frozen=True)
class Handed:
    """What is asked for. html: where the page goes; markdown, as_json: what standard output has instead of text."""

    html: Path | None
    markdown: bool
    as_json: bool

    @property
    def is_any(self) -> bool:
        """Whether a report beside the one for the terminal is asked for."""
        return self.html is not None or self.markdown

    @property
    def has_standard_output(self) -> bool:
        """Whether standard output is taken by one of these reports."""
        return self.markdown or self.html == STDOUT

    def check(self) -> None:
        """Raise BadParameter when two things are to go to standard output."""
        if self.markdown + self.as_json + (self.html == STDOUT) > 1:
            raise typer.BadParameter("--markdown, --json and --html - all go to standard output: choose one")


@dataclass(frozen=True)
class HandingOn:
    """The opened file, and how to fill it. descriptor: of the page's file, None for none or standard output."""

    wished: Handed
    descriptor: int | None

    def hand_on(
        self, trace: Trace, kind: TargetKind, *, keep_names: bool, baseline: Baseline | None = None
    ) -> Diagnosis:
        """Write what was asked for, and return the diagnosis that it tells."""
        from hangdoc.report.markdown import markdown
        from hangdoc.report.material import material
        from hangdoc.report.page.page import page

        found = material(trace, kind, keep_names=keep_names, baseline=baseline)
        if self.wished.html is not None:
            self._write(page(found))
        if self.wished.markdown:
            self._print(markdown(found))
        return found.diagnosis

    def _print(self, words: str) -> None:
        with suppress(BrokenPipeError):  # who reads had enough; the code stays that of the diagnosis
            emit(words)

    def _write(self, words: str) -> None:
        if self.descriptor is None:
            self._print(words)
            return
        try:
            if S_ISREG(os.fstat(self.descriptor).st_mode):
                os.ftruncate(self.descriptor, 0)
            with os.fdopen(self.descriptor, "wb", closefd=False) as file:
                file.write(words.encode())
        except OSError as error:
            raise _write_error(self.wished.html, error) from error
        say(f"hangdoc: {self.wished.html} is written ({len(words) >> 10} KiB): one file, open it in any browser")


@contextmanager
def opened(wished: Handed) -> Iterator[HandingOn]:
    """Open the page's file, and take it away again when nothing came of it.

    BadParameter: two reports for standard output; HangdocError (exit 2): the file cannot be written. Both before
    anything is read or watched.
    """
    wished.check()
    if wished.html is None or wished.html == STDOUT:
        yield HandingOn(wished, None)
        return
    is_new = not wished.html.exists()
    try:
        # O_NONBLOCK: a FIFO that nobody reads is an error, not a wait. Without O_TRUNC: an old page stays until there
        # is a new one.
        descriptor = os.open(wished.html, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except (OSError, ValueError) as error:
        raise _write_error(wished.html, error) from error
    os.set_blocking(descriptor, True)
    try:
        yield HandingOn(wished, descriptor)
    except BaseException:
        if is_new:
            wished.html.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def _write_error(path: Path | None, error: OSError | ValueError) -> HangdocError:
    reason = error.strerror if isinstance(error, OSError) else error
    return HangdocError(f"{path} cannot be written: {reason}", "choose another file, or free some space")
