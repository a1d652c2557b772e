"""A recording beside the clock: its disk may be slow or stuck, the rounds go on, and what is lost is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from hangdoc.model.snapshot import Snapshot
from hangdoc.model.stack import Stack
from hangdoc.trace.scribe import ANSWER_S, Scribe
from hangdoc.trace.writer import DiskError

MOST_ROUNDS = 30
"""Rounds that may wait for the disk: about those that an observation keeps in memory anyway."""


class Openable(Protocol):
    """A recording that is open; used in the thread of the scribe only."""

    def add(self, snapshot: Snapshot, stacks: Sequence[Stack]) -> None:
        """Append one round."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Complete the file."""


class Aside:
    """Hands the rounds of an observation to a recording, without ever waiting for its disk; a context manager.

    What the recording raises comes with the next round, or at the end. Rounds that found no room, and those that the
    disk does not take within some seconds of the end, are a DiskError there that counts them.
    """

    def __init__(self, path: Path, opened: Callable[[], Openable]) -> None:
        self._path = path
        self._scribe = Scribe("recording", MOST_ROUNDS)
        self._handed = self._written = 0
        try:
            self._recording = self._scribe.do(opened, ANSWER_S)
        except TimeoutError as error:
            raise DiskError(f"{path} cannot be written: {error.strerror}", _REMEDY) from error

    def add(self, snapshot: Snapshot, stacks: Sequence[Stack]) -> None:
        """Hand over one round; stacks: copied, since the table goes on changing."""
        self._handed += 1
        self._scribe.put(partial(self._write, snapshot, tuple(stacks)))

    def _write(self, snapshot: Snapshot, stacks: Sequence[Stack]) -> None:
        self._recording.add(snapshot, stacks)
        self._written += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scribe.close(ANSWER_S, partial(self._recording.__exit__, kind, error, trace))
        lost = self._handed - self._written
        if lost and error is None:
            message = f"{self._path}: the disk is too slow, {lost} of {self._handed} rounds are not in it"
            raise DiskError(message, _REMEDY)


_REMEDY = "choose a file on a faster disk; what was written can be read"
