"""A directory of samples as it stands: its files, what the manifests say of them, and what the writers do."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hangdoc.capture.layout import RECORDS, samples, started_at, temporaries
from hangdoc.errors import HangdocError

Record = dict[str, Any]


@dataclass(frozen=True)
class Directory:
    """samples: paths by number; records: what was noted before each file got its name, by its path inside.

    odd: what has a sample's name and is no regular file, and what it is instead; numbers: of all, odd ones too.
    written: paths whose file has had its name; run: layers and format, {} when unknown; writers: their last words.
    """

    path: Path
    samples: dict[int, Path]
    records: dict[str, list[Record]]
    written: dict[str, float]
    run: Record
    writers: tuple[Record, ...]
    unfinished: tuple[Path, ...]
    odd: dict[Path, str] = field(default_factory=dict)
    numbers: tuple[int, ...] = ()

    def name(self, path: Path) -> str:
        """Return a path as the manifests have it."""
        return str(path.relative_to(self.path))


def read(path: Path) -> Directory:
    """Read a directory; HangdocError when there is none, or no samples and no trace of a capture in it."""
    try:
        if not path.is_dir():
            raise HangdocError(f"{path} is no directory", "give the directory of --capture-dir")
        named = dict(sorted(samples(path)))
        odd = {entry: why for entry in named.values() if (why := _oddity(entry))}
        found = {number: entry for number, entry in named.items() if entry not in odd}
        numbers = tuple(named)
        records, written = _manifests(path)
        writers = tuple(_writers(path))
        run = _json(path / RECORDS / "run.json")
        unfinished = tuple(sorted(temporary for temporary, is_written in temporaries(path) if not is_written))
    except OSError as error:
        raise HangdocError(f"{path} cannot be read: {error.strerror}", "give a directory that you can read") from error
    if not named and not run and not writers:
        raise HangdocError(f"{path} holds no samples", "give the directory of --capture-dir")
    return Directory(path, found, records, written, run, writers, unfinished, odd, numbers)


def _oddity(entry: Path) -> str:
    """Say what is not a file that can be read as a sample, "" of one that is: a FIFO would hang."""
    try:
        mode = entry.stat().st_mode
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return "" if stat.S_ISREG(mode) else "is no regular file"


def gaps(numbers: Iterable[int]) -> list[list[int]]:
    """Return first and last of each range of numbers that are missing before the last one.

    >>> gaps([0, 1, 4, 6])
    [[2, 3], [5, 5]]
    """
    missing, expected = [], 0
    for number in sorted(numbers):
        if number > expected:
            missing.append([expected, number - 1])
        expected = number + 1
    return missing


def _manifests(path: Path) -> tuple[dict[str, list[Record]], dict[str, float]]:
    records: dict[str, list[Record]] = {}
    written: dict[str, float] = {}
    for manifest in sorted((path / RECORDS).glob("manifest-*.jsonl")):
        for line in _lines(manifest):
            if line.get("event") == "writing":
                records.setdefault(str(line.get("path")), []).append(line)
            elif line.get("event") == "written":
                written[str(line.get("path"))] = float(line.get("at") or 0)
    return records, written


def _lines(manifest: Path) -> Iterator[Record]:
    """A writer that was killed may have left half a line at the end."""
    for text in manifest.read_text(errors="replace").splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict):
            yield line


def _writers(path: Path) -> Iterator[Record]:
    for file in sorted((path / RECORDS).glob("writer-*.json")):
        facts = _json(file)
        if facts:
            ticks = facts.get("start_ticks")
            is_alive = isinstance(facts.get("pid"), int) and ticks and started_at(facts["pid"]) == ticks
            yield {**facts, "alive": bool(is_alive)}


def _json(path: Path) -> Record:
    try:
        value = json.loads(path.read_text(errors="replace"))
    except (FileNotFoundError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
