"""Where samples lie: SpecForge's directories and names, with hangdoc's records in a hidden one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

GROUP = 2000
"""Samples in one directory: SpecForge's --file-group-size."""

RECORDS = ".hangdoc"
SUFFIXES = {"specforge": (".ckpt", ".ckpt.gz"), "safetensors": (".safetensors",)}
"""By format: how finished samples end; the first is how they are written."""

_NAME = re.compile(r"data_(\d+)(\.ckpt|\.ckpt\.gz|\.safetensors)")
_TEMPORARY = re.compile(r"\.data_\d+\.(\d+)-(\d+)-\d+\.tmp")
_STARTED_AT = 19
"""Place of the start time among /proc/PID/stat's fields after the name, see proc(5)."""


def folder(directory: Path, index: int) -> Path:
    """Return the directory that holds the sample of this number."""
    first = index // GROUP * GROUP
    return directory / f"rows_{first}-{first + GROUP}"


def sample_path(directory: Path, index: int, suffix: str) -> Path:
    """Return the file of the sample of this number."""
    return folder(directory, index) / f"data_{index}{suffix}"


def exists(directory: Path, index: int, form: str) -> bool:
    """Say whether the sample is finished: a file under its own name always is."""
    return any(sample_path(directory, index, suffix).exists() for suffix in SUFFIXES[form])


def samples(directory: Path) -> Iterator[tuple[int, Path]]:
    """Yield number and path of each finished sample, in no order."""
    for rows in directory.glob("rows_*"):
        with os.scandir(rows) as entries:
            for entry in entries:
                match = _NAME.fullmatch(entry.name)
                if match:
                    yield int(match[1]), Path(entry.path)


def next_free(directory: Path) -> int:
    """Return the number after the last sample's."""
    return max((index for index, _ in samples(directory)), default=-1) + 1


def temporary(path: Path, pid: int, count: int) -> Path:
    """Return the name of the process's file of this count, before it is a sample's; no reader takes it for one."""
    return path.with_name(f".{path.name.partition('.')[0]}.{pid}-{started_at(pid)}-{count}.tmp")


def temporaries(directory: Path) -> Iterator[tuple[Path, bool]]:
    """Yield unfinished files and whether the process that writes them lives."""
    for path in directory.glob("rows_*/.data_*.tmp"):
        match = _TEMPORARY.fullmatch(path.name)
        if match:
            yield path, started_at(int(match[1])) == int(match[2]) != 0


def started_at(pid: int) -> int:
    """Return the process's start time in ticks after boot, 0 when it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[_STARTED_AT])
