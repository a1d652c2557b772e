"""Finds the owner of a lock that processes share, in whatever PID namespace it lives."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hangdoc.launch.table import listed_pids
from hangdoc.model.link import LinkEnd
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.procfs.errors import ProcParseError
from hangdoc.procfs.maps import DELETED, Mapping, may_be_opened, parse_maps, shared_files
from hangdoc.procfs.stat import StatLine, parse_stat
from hangdoc.procfs.status import parse_status
from hangdoc_probes._reading import DENIED, GONE, missing, numbered, read, read_table
from hangdoc_probes._tids import numbers_of

NAME = "locks"
INITIAL_NAMESPACE = "pid:[4026531836]"
"""PROC_PID_INIT_INO (include/linux/proc_ns.h): who lives there sees every process of the machine."""


@dataclass(frozen=True)
class Owners:
    """The living threads that know themselves by a number and whose processes have a shared memory.

    unread: why one that may be another could not be looked at.
    """

    threads: tuple[tuple[int, int], ...]
    unread: Missing | None


def owners(proc: Path, number: int, key: str) -> Owners:
    """Look for them in every process that can be seen: a lock records the number that its owner has inside.

    key: "device:inode:offset". Threads are told as (process, thread), in /proc's numbers.
    """
    found: list[tuple[int, int]] = []
    unread: Missing | None = None
    for pid, tid in _numbered(proc, number):
        try:
            if _maps(proc, pid, key):
                found.append((pid, tid))
        except OSError as error:
            if error.errno not in GONE:
                unread = missing(NAME, error)
    return Owners(tuple(found), unread)


MOST_OUTSIDE = 5000
"""Processes outside the launch whose memory is looked through in one round: 0.1 ms each were measured. Arbitrary."""


class Outsiders:
    """Which processes outside the launch have a piece of shared memory; looked for once a round, where somebody asks.

    Of processes that cannot be looked at, another user's are taken not to have it, as with the ends of pipes; nor those
    that are older than every member: what has no name comes to others by a fork. It fails for one that has memory open
    (a memfd) and has not mapped it.
    """

    def __init__(self, proc: Path, members: Iterable[ProcessKey]) -> None:
        self._proc = proc
        keys = tuple(members)
        self._members = {key.pid for key in keys}
        self._oldest_ticks = min((key.start_ticks for key in keys), default=0)

    def of(self, key: str) -> Reading[tuple[LinkEnd, ...]]:
        """Return who has the memory of a futex; key: "device:inode:offset"."""
        if isinstance(self._mapped, Missing):
            return self._mapped
        pids = self._mapped.value.get(key.rpartition(":")[0], ())
        return Known(tuple(end for pid in pids if (end := self._end(pid)) is not None))

    @cached_property
    def _mapped(self) -> Reading[dict[str, list[int]]]:
        found: dict[str, list[int]] = {}
        outside = sorted(set(listed_pids(self._proc)) - self._members)
        if len(outside) > MOST_OUTSIDE:
            return Missing(NAME, "failed", "there are more processes than are looked at")
        for pid in outside:
            try:
                for file in shared_files(read_table(f"{self._proc}/{pid}/maps")):
                    found.setdefault(file, []).append(pid)
            except OSError as error:
                if error.errno not in GONE and (error.errno not in DENIED or self._may_have_it(pid)):
                    return missing(NAME, error, attach=True)
        return Known(found)

    def _may_have_it(self, pid: int) -> bool:
        """Tell whether what a process will not show may be this launch's memory."""
        line = self._line(pid)
        try:
            own = parse_status(read(f"{self._proc}/{pid}/status")).user_id == os.geteuid()
        except (OSError, ProcParseError):
            return False
        return own and line is not None and line.start_ticks >= self._oldest_ticks

    def _line(self, pid: int) -> StatLine | None:
        try:
            return parse_stat(read(f"{self._proc}/{pid}/stat"))
        except (OSError, ProcParseError):
            return None

    def _end(self, pid: int) -> LinkEnd | None:
        line = self._line(pid)
        return (
            None
            if line is None or line.state in "ZX"
            else LinkEnd(ProcessKey(pid, line.start_ticks), False, command=line.name)
        )


MOST_SEMAPHORES = 10_000
"""Names in the folder of semaphores that are looked through; arbitrary."""


def is_linked(proc: Path, pid: int, mapping: Mapping) -> bool:
    """Tell whether memory whose mapping shows no name is a semaphore that has one.

    glibc makes a semaphore under a name of chance, which its mapping keeps, and links it to its own (sem_open.c).
    """
    folder, _, name = mapping.path.removesuffix(DELETED).rpartition("/")
    if not name.startswith(SEMAPHORE):
        return False
    try:
        with os.scandir(f"{proc}/{pid}/root{folder}") as entries:
            named = [
                one.name
                for one, _ in zip(entries, range(MOST_SEMAPHORES), strict=False)
                if one.inode() == mapping.inode
            ]
    except OSError:
        return True  # who could open it is not known
    return any(may_be_opened(f"{folder}/{one}") for one in named)


SEMAPHORE = "sem."
"""How the files of glibc's semaphores begin (sysdeps/pthread/shm-directory.h)."""


def sees_all(proc: Path) -> bool:
    """Tell whether no process can be hidden from here by a PID namespace, or by the mount options of /proc."""
    try:
        return (
            os.readlink(f"{proc}/self/ns/pid") == INITIAL_NAMESPACE  # noqa: PTH115  as elsewhere
            and Path(f"{proc}/1/status").exists()
        )
    except OSError:
        return False


def _numbered(proc: Path, number: int) -> Iterator[tuple[int, int]]:
    for name in os.listdir(proc):  # noqa: PTH208  a path object for each process costs more than it
        if not name.isdigit():
            continue
        try:
            yield from _threads(proc, int(name), number)
        except OSError as error:
            if error.errno not in GONE:
                raise


def _threads(proc: Path, pid: int, number: int) -> Iterator[tuple[int, int]]:
    """Yield the thread of a process that has this number in the innermost namespace it lives in."""
    task = f"{proc}/{pid}/task"
    if len(numbers_of(f"{proc}/{pid}/status", b"NSpid:")) <= 1:
        if Path(f"{task}/{number}").exists():
            yield pid, number
        return
    for tid in numbered(task):
        if numbers_of(f"{task}/{tid}/status", b"NSpid:")[-1:] == [number]:
            yield pid, tid


def _maps(proc: Path, pid: int, key: str) -> bool:
    mappings = parse_maps(read_table(f"{proc}/{pid}/maps"))
    return any(one.shared and key.startswith(f"{one.device}:{one.inode}:") for one in mappings)
