"""The folder of an unattended watch, written beside it: a disk that is slow or stuck does not hold up the rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias

from hangdoc.errors import HangdocError
from hangdoc.model.snapshot import Snapshot
from hangdoc.model.stack import Stack
from hangdoc.trace.aside import MOST_ROUNDS
from hangdoc.trace.records import Header, Trace
from hangdoc.trace.scribe import ANSWER_S, HURRIED_S, Scribe
from hangdoc.unattended.shelf import DISK, LIMIT_BYTES, Evidence, Occasion, Shelf

STALL_S = 10.0
"""How long the disk may be silent before that is told. Arbitrary."""

EVIDENCE_S = 30.0
"""How long the end of a watch, and the command at a hang, wait for evidence to be written. Arbitrary."""

MOST_EVIDENCE = 4
"""Evidence that may wait for the disk: each holds some thirty rounds in memory. Arbitrary."""

Kept: TypeAlias = "Future[Evidence | None]"
"""Evidence that is on the disk, once it is; None when it could not be written."""


class Folder:
    """Hands rounds and evidence to the shelf, in the thread of a scribe; evidence goes before the rounds that wait.

    Rounds that find no room are left out: the file that is begun after them holds those that are still in memory, and
    the others are counted and told. may_wait: a folder that the disk refuses now is tried again later, too.
    """

    def __init__(
        self, path: Path, complain: Callable[[str], None], limit_bytes: int = LIMIT_BYTES, *, may_wait: bool = False
    ) -> None:
        self._complain = complain
        self._shelf = Shelf(path, complain, limit_bytes)
        self._scribe = Scribe("folder", MOST_ROUNDS)
        self._last = -1
        self._waiting: list[Kept] = []
        self._has_stalled = False
        try:
            self._scribe.do(self._shelf.make, HURRIED_S if may_wait else ANSWER_S)
        except OSError as error:
            if not (may_wait and error.errno in DISK):
                message = f"{path}: {error.strerror}"
                raise HangdocError(message, "give --record a folder that can be written") from error
            self._shelf.fail(error)

    @property
    def lost(self) -> int:
        """Return how many rounds are in no file, as far as that is known."""
        return self._shelf.lost

    def attach(self, _header: Header, so_far: Callable[[], Trace]) -> Self:
        """Begin to record an observation. so_far: its rounds in memory, with which each file of the window begins."""
        self._so_far, self._last = so_far, -1
        return self

    def add(self, snapshot: Snapshot, _stacks: Sequence[Stack]) -> None:
        """Append one round to the window."""
        self._last = snapshot.index
        self._scribe.put(partial(self._shelf.add, snapshot, self._so_far()))
        stalled_s = self._scribe.stalled_s
        if stalled_s >= STALL_S and not self._has_stalled:
            self._complain(f"{self._shelf.path}: the disk has not answered for {stalled_s:.0f} s; the watch goes on")
        self._has_stalled = stalled_s >= STALL_S

    def keep(self, occasion: Occasion, trace: Trace, document_of: Callable[[Trace], str]) -> Kept:
        """Have evidence written. document_of: the document of a trace as it was read back."""
        kept: Kept = Future()
        self._waiting = [one for one in self._waiting if not one.done()]
        if len(self._waiting) >= MOST_EVIDENCE:
            self._complain(f"{self._shelf.path}: the evidence is lost, the disk does not take what waits for it")
            kept.set_result(None)
            return kept
        self._waiting.append(kept)
        evidence = self._shelf.evidence(occasion)

        def write() -> None:
            kept.set_result(evidence if self._shelf.keep(evidence, trace, document_of) else None)

        self._scribe.put(write, urgent=True)
        return kept

    def close(self) -> None:
        """Wait for what is being written, for a while at most, and tell what was lost."""
        is_waited_for = any(not one.done() for one in self._waiting)
        seconds = EVIDENCE_S if is_waited_for else ANSWER_S
        if self._scribe.close(seconds):
            return
        also = ", and has not taken the evidence" if any(not one.done() for one in self._waiting) else ""
        self._complain(f"{self._shelf.path}: the disk has not answered for {seconds:g} s{also}")
        self._shelf.lose(self._last - self._shelf.written)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scribe.put(partial(self._shelf.end, self._last), must=True)
