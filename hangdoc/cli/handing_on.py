"""Reports that are handed on: the page to its file, the Markdown to standard output."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hangdoc.cli.failure import say
from hangdoc.cli.handed import STDOUT, Handed
from hangdoc.cli.output import emit
from hangdoc.cli.report_file import ReportFile, report_file
from hangdoc.model.diagnosis import Diagnosis, TargetKind

if TYPE_CHECKING:
    from hangdoc.features.baseline import Baseline
    from hangdoc.trace.records import Trace


@dataclass(frozen=True)
class HandingOn:
    """What is asked for, and the file of the page; None for none, or for standard output."""

    wished: Handed
    file: ReportFile | None

    def hand_on(
        self, trace: Trace, kind: TargetKind, *, keep_names: bool, baseline: Baseline | None = None
    ) -> Diagnosis:
        """Write what was asked for, and return the diagnosis that it tells."""
        from hangdoc.report.markdown import markdown
        from hangdoc.report.material import material
        from hangdoc.report.page.page import page

        found = material(trace, kind, keep_names=keep_names, baseline=baseline)
        if self.file is not None:
            words = page(found)
            self.file.write(words)
            say(f"hangdoc: {self.file.path} is written ({len(words) >> 10} KiB): one file, open it in any browser")
        elif self.wished.html is not None:
            _print(page(found))
        if self.wished.markdown:
            _print(markdown(found))
        return found.diagnosis


@contextmanager
def opened(wished: Handed) -> Iterator[HandingOn]:
    """Open the page's file before anything is read or watched.

    BadParameter: two reports for standard output; HangdocError (exit 2): the file cannot be written.
    """
    wished.check()
    if wished.html is None or wished.html == STDOUT:
        yield HandingOn(wished, None)
        return
    with report_file(wished.html) as file:
        yield HandingOn(wished, file)


def _print(words: str) -> None:
    with suppress(BrokenPipeError):  # who reads had enough; the code stays that of the diagnosis
        emit(words)
