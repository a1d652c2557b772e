"""Puts one sample on the disk: whole or not at all, never over another, with a line in the manifest first."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

from .formats import SAVES, Hashing
from .layout import RECORDS, SUFFIXES, exists, next_free, sample_path, temporaries, temporary

Record = dict[str, Any]


class Store:
    """A directory of samples that this process writes to, with several threads; others may, too."""

    def __init__(self, directory: Path, form: str) -> None:
        self.directory, self.form = directory, form
        for path, is_written in temporaries(directory):
            if not is_written:  # of a process that was killed: its sample is taken again
                path.unlink(missing_ok=True)
        self._next = next_free(directory)
        self._count = itertools.count()
        self._naming = threading.Lock()
        self._manifest = directory / RECORDS / f"manifest-{time.time_ns()}-{os.getpid()}.jsonl"

    def has(self, index: int | None) -> bool:
        """Say whether the sample with this number is finished."""
        return index is not None and exists(self.directory, index, self.form)

    def put(self, index: int | None, tensors: dict[str, Any], record: Record) -> int | None:
        """Write a sample, without a number under the next free one; return its number, None when it was there. OSError.

        The manifest has its checksum before the file has its name: a file with a name is whole and can be checked.
        """
        first = self._next if index is None else index
        written = self._write(first, tensors)
        try:
            with self._naming:
                found = self._name(written.path, index, {**record, **written.record})
        finally:
            written.path.unlink(missing_ok=True)
        return found

    def _write(self, index: int, tensors: dict[str, Any]) -> _Written:
        path = temporary(sample_path(self.directory, index, SUFFIXES[self.form][0]), os.getpid(), next(self._count))
        path.parent.mkdir(exist_ok=True)
        try:
            with path.open("wb") as stream:
                hashing = Hashing(stream)
                SAVES[self.form](tensors, hashing)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return _Written(path, {"sha256": hashing.digest.hexdigest(), "bytes": hashing.size_bytes})

    def _name(self, path: Path, wanted: int | None, record: Record) -> int | None:
        index = self._next if wanted is None else wanted
        while True:
            target = sample_path(self.directory, index, SUFFIXES[self.form][0])
            target.parent.mkdir(exist_ok=True)
            name = str(target.relative_to(self.directory))
            if not exists(self.directory, index, self.form):
                self._note({"event": "writing", "index": index, "path": name, "at": time.time(), **record})
                with contextlib.suppress(FileExistsError):
                    _give_name(path, target)
                    self._next = max(self._next, index + 1)
                    self._note({"event": "written", "index": index, "path": name, "at": time.time()})
                    return index
            if wanted is not None:
                return None
            index += 1

    def _note(self, line: Record) -> None:
        with self._manifest.open("a") as stream:
            stream.write(json.dumps(line) + "\n")


class _Written:
    """A whole file under its temporary name."""

    def __init__(self, path: Path, record: Record) -> None:
        self.path, self.record = path, record


def _give_name(path: Path, target: Path) -> None:
    """FileExistsError when another writer was first; a file system without hard links cannot tell, and renames."""
    try:
        os.link(path, target)
    except FileExistsError:
        raise
    except OSError:
        path.rename(target)
