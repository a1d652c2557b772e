"""The files of an unattended watch in their folder: a rolling window of what was read, and evidence; bounded."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Literal, TypeAlias

from hangdoc.errors import HangdocError
from hangdoc.model.snapshot import Snapshot
from hangdoc.trace.records import Trace
from hangdoc.unattended.segment import Segment, write_compact

Occasion: TypeAlias = Literal["hang", "limit", "end"]
"""Why evidence was taken: a hang began, a time limit of the launch comes near, the launch ended."""

WINDOW_ROUNDS = 300
"""Rounds in one file of the rolling window. Arbitrary: five minutes, with the 31 rounds before them."""

LIMIT_BYTES = 512 << 20
"""Bytes that the folder's files may take together, unless the user says otherwise. Arbitrary."""

RETRY_S = 30.0
"""How long a disk that could not be written is left alone. Arbitrary."""

DISK = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE, errno.ETIMEDOUT}
)
"""Errors of a disk that is full, failing, silent or may not be written, which may pass; others mean a wrong path."""

FOLDER_MODE = 0o700
SUFFIX = ".hangtrace"
_OURS = re.compile(r"(window|hang|limit|end)-\d{8}T\d{6}Z-[0-9a-f]{8}\.(hangtrace|json)")


@dataclass(frozen=True)
class Evidence:
    """Files that were written on one occasion. document: the diagnosis of the trace, as redacted as that is."""

    trace: Path
    document: Path


class Shelf:
    """Takes rounds and evidence, and waits for the disk; one that fails is complained of and tried again later.

    Bound: all files together take limit_bytes at most, and the part of the window that is being written; the oldest
    parts go first, then the oldest evidence, never the newest of it, nor what another watch is writing. A full disk is
    made room on for evidence, by the parts of the window. Names begin with what it is and the time, and end with a
    random token, so that a watch that was started again, or a second one, goes on beside what is there.
    """

    def __init__(self, path: Path, complain: Callable[[str], None], limit_bytes: int = LIMIT_BYTES) -> None:
        self.path = path
        self.lost = 0
        self.written = -1
        self._complain = complain
        self._limit_bytes = limit_bytes
        self._window: Segment | None = None
        self._window_path: Path | None = None
        self._newest: Evidence | None = None
        self._failed_s: float | None = None
        self._is_made = False

    def make(self) -> None:
        """Make the folder, until it was made; one that somebody removes later is not made again."""
        if not self._is_made:
            self.path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            self._is_made = True

    def add(self, snapshot: Snapshot, so_far: Trace) -> None:
        """Append one round to the window. so_far: the rounds in memory, with which each file of the window begins."""
        if self._failed_s is not None and time.monotonic() - self._failed_s < RETRY_S:
            return
        try:
            self._add(snapshot, so_far)
            self._failed_s = None
        except (HangdocError, OSError) as error:
            self.fail(error)

    def keep(self, evidence: Evidence, trace: Trace, document_of: Callable[[Trace], str]) -> bool:
        """Write evidence and see it on the disk; whether that could be done.

        document_of: the document of a trace as it was read back.
        """
        try:
            self.make()
            try:
                _write(evidence, trace, document_of)
            except (HangdocError, OSError) as error:
                if not self._make_room(error):
                    raise
                _write(evidence, trace, document_of)
        except (HangdocError, OSError) as error:
            self.fail(error)
            return False
        self._newest = evidence
        self._prune()
        return True

    def end(self, last: int) -> None:
        """Complete the window of an observation whose last round had this number (-1: none); another may begin."""
        try:
            self._close_window()
        except (HangdocError, OSError) as error:
            self.fail(error)
        self.lose(last - self.written)
        self.written = -1

    def fail(self, error: HangdocError | OSError) -> None:
        """Complain of the disk, once until it is well again, and leave it alone for a while."""
        if self._failed_s is None:
            what = error.message if isinstance(error, HangdocError) else f"{self.path}: {error.strerror}"
            self._complain(f"{what}; the watch goes on, and tries again every {RETRY_S:.0f} s")
        self._failed_s = time.monotonic()
        window, self._window = self._window, None
        if window is not None:
            window.abandon()

    def lose(self, rounds: int) -> None:
        """Count and tell rounds that no file has."""
        if rounds > 0:
            self.lost += rounds
            told = "1 round is" if rounds == 1 else f"{rounds} rounds are"
            self._complain(f"{self.path}: {told} in no file, the disk did not take them in time")

    def evidence(self, occasion: Occasion) -> Evidence:
        """Name the files of new evidence."""
        path = self._name(occasion)
        return Evidence(path, path.with_suffix(".json"))

    def _add(self, snapshot: Snapshot, so_far: Trace) -> None:
        is_next = snapshot.index == self.written + 1
        if self._window is not None and (self._window.rounds >= WINDOW_ROUNDS or not is_next):
            self._close_window()
        if self._window is None:
            self._window = self._open_window(snapshot, so_far)
        self._window.add(snapshot, so_far.stacks)
        self.written = snapshot.index

    def _open_window(self, snapshot: Snapshot, so_far: Trace) -> Segment:
        """Begin a file with the rounds in memory: they fill a gap, and what is older than they are is lost."""
        self.make()
        self._prune()
        self._window_path = self._name("window")
        segment = _begun(self._window_path, so_far)
        try:
            for one in so_far.snapshots:
                if one.index < snapshot.index:
                    segment.add(one, so_far.stacks)
        except BaseException:
            segment.abandon()
            raise
        segment.rounds = 0
        # The first is what is left of all the rounds up to it, when there were more than fit in memory.
        if so_far.snapshots[0].index > 0:
            self.lose(so_far.snapshots[0].index - self.written)
        return segment

    def _close_window(self) -> None:
        window, self._window = self._window, None
        if window is not None:
            window.close()

    def _name(self, kind: str) -> Path:
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        return self.path / f"{kind}-{stamp}-{token_hex(4)}{SUFFIX}"

    def _make_room(self, error: HangdocError | OSError) -> bool:
        """Remove the parts of the window that are complete, when the disk is full; whether there were any."""
        cause = error.__cause__ if isinstance(error, HangdocError) else error
        if not isinstance(cause, OSError) or cause.errno not in (errno.ENOSPC, errno.EDQUOT):
            return False
        before = sum(size for _, size in _ours(self.path))
        for path, _ in _ours(self.path):
            if path.name.startswith("window-") and not _is_being_written(path):
                with suppress(OSError):
                    path.unlink()
        return sum(size for _, size in _ours(self.path)) < before

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


def _begun(path: Path, so_far: Trace) -> Segment:
    """Begin a file; one that the disk has not even taken a header of does not stay."""
    try:
        return Segment(path, so_far.header)
    except HangdocError:
        with suppress(OSError):
            path.unlink()
        raise


def _write(evidence: Evidence, trace: Trace, document_of: Callable[[Trace], str]) -> None:
    """Write both files, or neither: a cut document says nothing, and a cut trace has its rounds in the window."""
    try:
        write_compact(evidence.trace, trace)
        _write_private(evidence.document, document_of)
        _sync(evidence.trace.parent)
    except BaseException:
        for path in (evidence.document, evidence.trace):
            with suppress(OSError):
                path.unlink()
        raise


def _sync(folder: Path) -> None:
    """Return when the disk has the names in a folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_private(path: Path, document_of: Callable[[Trace], str]) -> None:
    from hangdoc.trace.reader import read  # noqa: PLC0415 - only when there is evidence

    text = document_of(read(path.with_suffix(SUFFIX)))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)


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
