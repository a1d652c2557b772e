"""What processes have open and mapped, by the identity of the file and not by its name."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from hangdoc.errors import HangdocError
from hangdoc.launch.table import is_same, read_stat
from hangdoc.model.process import ProcessKey
from hangdoc.procfs.maps import parse_maps

Identity: TypeAlias = tuple[int, int]
"""Device and inode."""

SHARED_OBJECTS = ("pipe:[", "socket:[")
"""What a child can only have inherited, or been sent: it has no name by which anybody could open it."""

SHARED_MEMORY = "/dev/shm/"  # noqa: S108  the kernel's place for it

STANDARD_DESCRIPTORS = 3
"""Descriptors 0 to 2 tell nothing: whatever a terminal or a script started shares them."""


@dataclass(frozen=True)
class OpenFiles:
    """The descriptors of one process: what each link shows."""

    key: ProcessKey
    links: dict[int, str]

    def private(self) -> set[str]:
        """Return pipes and sockets beyond the standard descriptors."""
        return {t for n, t in self.links.items() if n >= STANDARD_DESCRIPTORS and t.startswith(SHARED_OBJECTS)}

    def outputs(self) -> set[str]:
        """Return the files and pipes that standard output and error are; a terminal is everybody's."""
        return {t for n, t in self.links.items() if n in {1, 2} and not t.startswith(("/dev/", "anon_inode:"))}

    def piped_in(self) -> set[str]:
        """Return the pipe or socket that standard input is."""
        return {t for n, t in self.links.items() if n == 0 and t.startswith(SHARED_OBJECTS)}

    def sockets(self) -> set[int]:
        """Return inodes of sockets."""
        return {int(t[8:-1]) for t in self.links.values() if t.startswith("socket:[")}

    def gpus(self) -> tuple[str, ...]:
        """Return open device files of GPUs ("/dev/nvidia0"), without the control device, which holds no memory."""
        return tuple(sorted({t for t in self.links.values() if t.startswith("/dev/nvidia") and t[11:].isdigit()}))


def read_open(proc: Path, key: ProcessKey) -> OpenFiles | None:
    """Read a process's descriptors; None when they may not be read or it has ended."""
    directory = f"{proc}/{key.pid}/fd"
    links: dict[int, str] = {}
    try:
        names = os.listdir(directory)  # noqa: PTH208  a path object costs more than the look
    except OSError:
        return None
    for name in names:
        try:
            links[int(name)] = os.readlink(f"{directory}/{name}")  # noqa: PTH115  "pipe:[1]" is no path
        except OSError:
            continue  # closed in the meantime
    return OpenFiles(key, links) if is_same(proc, key) else None


def identities(proc: Path, opened: OpenFiles) -> Iterator[tuple[int, Identity, str]]:
    """Yield number, identity and shown path of every descriptor that leads to a file with a name."""
    for number, target in opened.links.items():
        if not target.startswith("/") or target.startswith(("/proc/", "/sys/")):
            continue
        try:
            found = os.stat(f"{proc}/{opened.key.pid}/fd/{number}")  # noqa: PTH116  the link leads past every path
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode):
            yield number, (found.st_dev, found.st_ino), target


def mapped(proc: Path, key: ProcessKey, below: str = SHARED_MEMORY) -> dict[Identity, str] | None:
    """Return the files below a directory that a process has mapped; None when that may not be read."""
    try:
        mappings = parse_maps((proc / str(key.pid) / "maps").read_bytes())
    except (OSError, HangdocError):
        return None
    found = {}
    for one in mappings:
        if one.path.startswith(below):
            major, _, minor = one.device.partition(":")
            found[os.makedev(int(major, 16), int(minor, 16)), one.inode] = one.path.removesuffix(" (deleted)")
    return found if is_same(proc, key) else None


def holders(proc: Path, keys: Iterable[ProcessKey], wanted: set[Identity]) -> tuple[dict[Identity, int], list[int]]:
    """Return who has which of these files open or mapped, and the pids of which that cannot be told."""
    found: dict[Identity, int] = {}
    untold: list[int] = []
    for key in keys:
        opened, maps = read_open(proc, key), mapped(proc, key)
        if opened is None or maps is None:
            untold += [key.pid] if lives(proc, key) else []
            continue
        for identity in {identity for _, identity, _ in identities(proc, opened)} | set(maps):
            if identity in wanted:
                found.setdefault(identity, key.pid)
    return found, untold


def lives(proc: Path, key: ProcessKey) -> bool:
    """Say whether a process is still there and no zombie, which has nothing open."""
    try:
        line = read_stat(proc, key.pid)
    except PermissionError:
        return True
    return line is not None and line.start_ticks == key.start_ticks and line.state not in "ZX"
