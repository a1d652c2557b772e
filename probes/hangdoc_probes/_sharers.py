"""Finds the owner of a lock that processes share, in whatever PID namespace it lives."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hangdoc.model.reading import Missing
from hangdoc.procfs.maps import parse_maps
from hangdoc_probes._reading import GONE, missing, numbered, read_table
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
