"""The folder of an unattended watch: a rolling window of what was read, and the evidence of each hang; bounded."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Literal, Self, TypeAlias

from msgspec.structs import replace

from hangdoc.errors import HangdocError
from hangdoc.model.reading import Known
from hangdoc.model.snapshot import Sample, Snapshot
from hangdoc.model.stack import Stack, Stacks
from hangdoc.trace.records import Header, Trace
from hangdoc.trace.writer import Writer

Occasion: TypeAlias = Literal["hang", "limit", "end"]
"""Why evidence was taken: a hang began, a time limit of the launch comes near, the launch ended."""

WINDOW_ROUNDS = 300
"""Rounds in one file of the rolling window. Arbitrary: five minutes, with the 31 rounds before them."""

LIMIT_BYTES = 512 << 20
"""Bytes that the folder's files may take together, unless the user says otherwise. Arbitrary."""

RETRY_S = 30.0
"""How long a disk that could not be written is left alone. Arbitrary."""

DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO})
"""Errors of a disk that is full, failing or may not be written, which may pass; others mean a wrong path."""

FOLDER_MODE = 0o700
SUFFIX = ".hangtrace"
_OURS = re.compile(r"(window|hang|limit|end)-\d{8}T\d{6}Z-[0-9a-f]{8}\.(hangtrace|json)")


@dataclass(frozen=True)
class Evidence:
    """Files that were written on one occasion. document: the diagnosis of the trace, as redacted as that is."""

    trace: Path
    document: Path


class Segment:
    """One trace in the folder; it numbers its stacks itself, so that it holds none that belong to older ones."""

    def __init__(self, path: Path, header: Header) -> None:
        self.rounds = 0
        self._writer = Writer.open(path, header)
        self._numbers: dict[int, int] = {}
        self._stacks: list[Stack] = []

    def add(self, snapshot: Snapshot, stacks: Sequence[Stack]) -> None:
        """Append one round; stacks: the table that it refers to."""
        samples = tuple(self._renumbered(sample, stacks) for sample in snapshot.samples)
        self._writer.add(replace(snapshot, samples=samples), self._stacks)
        self.rounds += 1

    def close(self) -> None:
        """Complete the file."""
        self._writer.close()

    def _renumbered(self, sample: Sample, stacks: Sequence[Stack]) -> Sample:
        value = sample.reading.value if isinstance(sample.reading, Known) else None
        if not isinstance(value, Stacks):
            return sample
        threads = tuple(replace(one, stack=self._number(one.stack, stacks)) for one in value.threads)
        return replace(sample, reading=Known(replace(value, threads=threads)))

    def _number(self, number: int, stacks: Sequence[Stack]) -> int:
        if number not in self._numbers:
            self._numbers[number] = len(self._stacks)
            self._stacks.append(stacks[number])
        return self._numbers[number]


class Folder:
    """Takes rounds like a writer, and evidence when asked; a disk that fails is complained of and tried again later.

    Bound: all files together take limit_bytes at most, and the part of the window that is being written; the oldest
    parts go first, then the oldest evidence, never the newest of it, nor what another watch is writing. Names begin
    with what it is and the time, and end with a random token, so that a watch that was started again, or a second one,
    goes on beside what is there. may_wait: a folder that the disk refuses now is tried again later, too.
    """

    def __init__(
        self, path: Path, complain: Callable[[str], None], limit_bytes: int = LIMIT_BYTES, *, may_wait: bool = False
    ) -> None:
        self.path = path
        self._complain = complain
        self._limit_bytes = limit_bytes
        self._window: Segment | None = None
        self._window_path: Path | None = None
        self._newest: Evidence | None = None
        self._failed_s: float | None = None
        self._is_made = False
        try:
            self._make()
        except OSError as error:
            if not (may_wait and error.errno in DISK):
                message = f"{self.path}: {error.strerror}"
                raise HangdocError(message, "give --record a folder that can be written") from error
            self._fail(error)

    def attach(self, header: Header, so_far: Callable[[], Trace]) -> Self:
        """Begin to record an observation. so_far: its rounds in memory, with which each file of the window begins."""
        self._header, self._so_far = header, so_far
        return self

    def add(self, snapshot: Snapshot, stacks: Sequence[Stack]) -> None:
        """Append one round to the window."""
        if self._failed_s is not None and time.monotonic() - self._failed_s < RETRY_S:
            return
        try:
            self._add(snapshot, stacks)
            self._failed_s = None
        except (HangdocError, OSError) as error:
            self._fail(error)

    def keep(self, occasion: Occasion, trace: Trace, document_of: Callable[[Trace], str]) -> Evidence | None:
        """Write evidence; None when it could not be. document_of: the document of a trace as it was read back."""
        path = self._name(occasion)
        evidence = Evidence(path, path.with_suffix(".json"))
        try:
            self._make()
            write_compact(path, trace)
            _write_private(evidence.document, document_of)
        except (HangdocError, OSError) as error:
            self._fail(error)
            return None
        self._newest = evidence
        self._prune()
        return evidence

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._close_window()
        except (HangdocError, OSError) as failure:
            self._fail(failure)

    def _add(self, snapshot: Snapshot, stacks: Sequence[Stack]) -> None:
        if self._window is not None and self._window.rounds >= WINDOW_ROUNDS:
            self._close_window()
        if self._window is None:
            self._window = self._open_window(snapshot)
        self._window.add(snapshot, stacks)

    def _open_window(self, snapshot: Snapshot) -> Segment:
        self._make()
        self._prune()
        self._window_path = self._name("window")
        segment = Segment(self._window_path, self._header)
        before = self._so_far()
        for one in before.snapshots:
            if one.index < snapshot.index:
                segment.add(one, before.stacks)
        segment.rounds = 0
        return segment

    def _close_window(self) -> None:
        window, self._window = self._window, None
        if window is not None:
            window.close()

    def _fail(self, error: HangdocError | OSError) -> None:
        if self._failed_s is None:
            what = error.message if isinstance(error, HangdocError) else f"{self.path}: {error.strerror}"
            self._complain(f"{what}; the watch goes on, and tries again every {RETRY_S:.0f} s")
        self._failed_s = time.monotonic()
        self._window = None

    def _name(self, kind: str) -> Path:
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        return self.path / f"{kind}-{stamp}-{token_hex(4)}{SUFFIX}"

    def _make(self) -> None:
        """Make the folder, until it was made; one that somebody removes later is not made again."""
        if not self._is_made:
            self.path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            self._is_made = True

    def _prune(self) -> None:
        """Remove the oldest files until the rest fits."""
        kept = {self._window_path if self._window is not None else None}
        kept |= {self._newest.trace, self._newest.document} if self._newest is not None else set()
        files = sorted(_ours(self.path), key=_order)
        total = sum(size for _, size in files)
        for path, size in files:
            if total <= self._limit_bytes:
                return
            if path not in kept and not _is_being_written(path):
                with suppress(OSError):
                    path.unlink()
                    total -= size


def write_compact(path: Path, trace: Trace) -> None:
    """Write a trace as one file, round by round, so that what was written before a crash can be read."""
    segment = Segment(path, trace.header)
    try:
        for snapshot in trace.snapshots:
            segment.add(snapshot, trace.stacks)
    finally:
        segment.close()


def _write_private(path: Path, document_of: Callable[[Trace], str]) -> None:
    from hangdoc.trace.reader import read  # noqa: PLC0415 - only when there is evidence

    text = document_of(read(path.with_suffix(SUFFIX)))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)


def _ours(folder: Path) -> list[tuple[Path, int]]:
    found: list[tuple[Path, int]] = []
    for path in folder.iterdir():
        with suppress(OSError):
            if _OURS.fullmatch(path.name):
                found.append((path, path.stat().st_size))
    return found


def _is_being_written(path: Path) -> bool:
    """Say whether a recording holds its lock on the file."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False


def _order(file: tuple[Path, int]) -> tuple[bool, str]:
    """Sort parts of the window before evidence, and old before new."""
    kind, _, time_and_token = file[0].name.partition("-")
    return kind != "window", time_and_token
