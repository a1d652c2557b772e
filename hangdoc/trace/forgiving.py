"""A recording beside a look: what the disk does not take, or not in time, costs the recording, never the look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from hangdoc.errors import HangdocError
from hangdoc.model.snapshot import Snapshot
from hangdoc.model.stack import Stack
from hangdoc.trace.aside import Aside
from hangdoc.trace.records import Header, Trace
from hangdoc.trace.writer import DiskError, Writer


class Forgiving:
    """Opens and takes a recording like Writer, but goes on without the file when the disk is full, read-only or broken.

    tell: called once, with what became of the file. lost: the same afterwards, None while all is well. Wrong use (a
    path that leads nowhere, a file that is no trace) is an exception from opening, as with Writer.
    """

    def __init__(self, path: Path, tell: Callable[[HangdocError], object]) -> None:
        self.lost: HangdocError | None = None
        self._path = path
        self._tell = tell
        self._aside: Aside | None = None

    def open(self, header: Header, _so_far: Callable[[], Trace]) -> Self:
        """Create the file and write the header."""
        try:
            self._aside = Aside(self._path, lambda: Writer.open(self._path, header))
        except DiskError as error:
            self._lose(error)
        return self

    def add(self, snapshot: Snapshot, stacks: Sequence[Stack]) -> None:
        """Append one round, if there is still a file."""
        if self._aside is None or self.lost is not None:
            return
        try:
            self._aside.add(snapshot, stacks)
        except HangdocError as error:
            self._lose(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._aside is None:
            return
        try:
            self._aside.__exit__(kind, error, trace)
        except HangdocError as failure:
            if self.lost is None:
                self._lose(failure)

    def _lose(self, error: HangdocError) -> None:
        self.lost = error
        self._tell(error)
