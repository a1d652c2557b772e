"""Looks at the lock file that a thread asks for: is it there, who has it open, could a holder be out of sight."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from msgspec import structs

from hangdoc.model.link import LinkEnd
from hangdoc.model.lock_file import LockFile, LockFileKind
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.procfs.locks import parse_lock_line
from hangdoc.procfs.mounts import Mount, mount_of, parse_mounts
from hangdoc_probes._askers import NAME, Asking
from hangdoc_probes._holders import Holders
from hangdoc_probes._reading import missing, read_table

BATON_FILE = "lock"
"""What torch calls the file in its build directory (FileBaton(os.path.join(build_directory, "lock")))."""
SUFFIX = ".lock"
MOST_BESIDE = 2000
"""Files beside the lock file that are asked when they were written; arbitrary."""
MOST_MARKER_BYTES = 512
"""Of a lock file that are read; arbitrary: a marker is a pid, a name and a number."""
FIRST_PID_NAMESPACE = "pid:[4026531836]"
"""PROC_PID_INIT_INO (include/linux/proc_ns.h): who is in it sees every process of the machine."""


class Asked:
    """One process's view of the file system, in which its lock files lie."""

    def __init__(self, proc: Path, pid: int, holders: Holders) -> None:
        self.proc, self.pid, self.holders = proc, pid, holders

    def outer(self, path: str) -> str:
        """Return where a path of the process can be found from here."""
        return f"{self.proc}/{self.pid}/root{path}" if path.startswith("/") else f"{self.proc}/{self.pid}/cwd/{path}"

    @cached_property
    def mounts(self) -> tuple[Mount, ...]:
        """What is mounted in its view."""
        return parse_mounts(read_table(f"{self.proc}/{self.pid}/mountinfo"))

    @cached_property
    def sees_all(self) -> bool:
        """Tell whether hangdoc sees every process of this machine, those of other containers too."""
        return os.readlink(f"{self.proc}/self/ns/pid") == FIRST_PID_NAMESPACE  # noqa: PTH115  "pid:[1]" is no path


def described(asked: Asked, asking: Asking) -> LockFile | None:
    """Return the lock file that a thread asks for; None when no text around it leads to one that is there."""
    path = next((path for path in _candidates(asking) if os.path.isfile(asked.outer(path))), None)  # noqa: PTH113
    if path is None:
        return None
    try:
        absolute = path if path.startswith("/") else os.path.normpath(f"{_folder(asked)}/{path}")
        return LockFile(
            tid=asking.tid,
            kind=asking.kind,
            path=absolute,
            holders=_holders(asked, absolute, asking.kind),
            elsewhere=_may_be_elsewhere(asked, absolute) or _names_another_host(asked.outer(absolute)),
            quiet_s=_quiet(Path(asked.outer(absolute)).parent),
        )
    except FileNotFoundError:
        return None  # it was let go meanwhile


def _may_be_elsewhere(asked: Asked, path: str) -> bool:
    """Tell whether a process that cannot be seen from here may use the file: another machine's, or a container's."""
    mount = mount_of(asked.mounts, path)
    return mount is None or mount.shared or (not asked.sees_all and mount.point != "/")


def _names_another_host(path: str) -> bool:
    """Tell whether a soft lock says that it was made on another machine: its lines are a pid and a host's name."""
    with Path(path).open("rb") as file:
        lines = file.read(MOST_MARKER_BYTES).decode("utf-8", "replace").split("\n")
    return len(lines) > 1 and lines[0].isdigit() and lines[1] not in {"", os.uname().nodename}


def _folder(asked: Asked) -> str:
    return os.readlink(f"{asked.proc}/{asked.pid}/cwd")  # noqa: PTH115  as the process sees it


def _candidates(asking: Asking) -> Iterator[str]:
    """Yield the paths that the texts around a wait may mean, nearest first."""
    for text in asking.texts:
        if text.endswith((SUFFIX, f"/{BATON_FILE}")):
            yield text
        elif asking.kind == "existence":
            yield f"{text.rstrip('/')}/{BATON_FILE}"


def _holders(asked: Asked, path: str, kind: LockFileKind) -> Reading[tuple[LinkEnd, ...]]:
    """Return who has the file open, and for "flock" a lock on it.

    Whoever holds it keeps it open: FileBaton and SoftFileLock close it as they let go. Processes of other users are not
    seen without the right to; a file of somebody else's is then held by nobody who could be told.
    """
    owner = os.stat(asked.outer(path)).st_uid  # noqa: PTH116
    found: dict[int, LinkEnd] = {}
    for one in asked.holders.of_file(asked.outer(path)):
        if kind == "flock" and not _has_lock(asked.holders, one.pid, one.fd):
            continue
        end = asked.holders.end(one.pid, one.fd)
        if end is not None:
            ticks = asked.holders.tree_ticks(one.pid)
            found.setdefault(one.pid, structs.replace(end, tree_ticks=ticks))
    if not found and os.geteuid() not in {0, owner}:
        return Missing(NAME, "denied", "the lock file is of another user, whose processes may not be looked at")
    if not found and not asked.holders.complete:
        return Missing(NAME, "failed", "there are more open files than are looked at")
    return Known(tuple(found.values()))


def _has_lock(holders: Holders, pid: int, fd: int) -> bool:
    try:
        return bool(parse_lock_line(holders.info(pid, fd)))
    except OSError:
        return False


def _quiet(directory: Path) -> Reading[float]:
    newest = 0.0
    try:
        with os.scandir(directory) as entries:
            for entry, _ in zip(entries, range(MOST_BESIDE), strict=False):
                newest = max(newest, entry.stat(follow_symlinks=False).st_mtime)
    except OSError as error:
        return missing(NAME, error)
    return Known(max(0.0, time.time() - newest))
