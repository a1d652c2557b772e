"""Read the process table: one entry a process, each read so that a reused pid is never taken for the old process."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hangdoc.launch.age import is_older
from hangdoc.launch.commands import Kind, is_called_systemd, kind_of
from hangdoc.launch.recognise import Sighting, recognise
from hangdoc.model.process import ProcessKey
from hangdoc.procfs.cmdline import parse_cmdline
from hangdoc.procfs.errors import ProcParseError
from hangdoc.procfs.stat import StatLine, parse_stat

LONGEST_TITLE = 200
"""Characters of a title that are kept, as the model says."""

SYSTEMD = re.compile(r"(?:/usr)?/s?bin/(?:systemd|init)|.*/lib/systemd/systemd")
"""Where its programs lie; in a user's own folder there are programs of the user's."""

PIPE = re.compile(r"pipe:\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Entry:
    """One process of the table, as it was when it was read."""

    key: ProcessKey
    ppid: int
    group: int
    session: int
    state: str
    comm: str
    argv: tuple[str, ...]
    kind: Kind
    sighting: Sighting

    @property
    def pid(self) -> int:
        """The process id."""
        return self.key.pid

    @property
    def title(self) -> str:
        """The command line or own title; a zombie has only its short name left."""
        return " ".join(self.argv).strip()[:LONGEST_TITLE] or f"[{self.comm}]"


Table = dict[int, Entry]


def read_stat(proc: Path, pid: int) -> StatLine | None:
    """Read a stat line; None when there is no such process (any more). PermissionError when it may not be read."""
    try:
        return parse_stat((proc / str(pid) / "stat").read_bytes())
    except (FileNotFoundError, ProcessLookupError, NotADirectoryError, ProcParseError):
        return None


def is_same(proc: Path, key: ProcessKey) -> bool:
    """Say whether this process still lives (or is a zombie): the pid alone would also fit its successor."""
    try:
        stat = read_stat(proc, key.pid)
    except PermissionError:
        return False
    return stat is not None and stat.start_ticks == key.start_ticks


def read_argv(proc: Path, pid: int) -> tuple[str, ...]:
    """Read a command line; empty for a zombie, a kernel thread, or when it is gone or hidden."""
    try:
        return parse_cmdline((proc / str(pid) / "cmdline").read_bytes())
    except OSError:
        return ()


def read_entry(proc: Path, pid: int) -> Entry | None:
    """Read one process; None when it is gone, hidden, or its pid was reused while it was read."""
    try:
        stat = read_stat(proc, pid)
    except PermissionError:
        return None
    if stat is None:
        return None
    argv = read_argv(proc, pid)
    key = ProcessKey(pid, stat.start_ticks)
    entry = make_entry(stat, argv, proc)
    return entry if not argv or is_same(proc, key) else None


def make_entry(stat: StatLine, argv: tuple[str, ...], proc: Path) -> Entry:
    """Classify what was read; proc: where it was read, for what only claims to be systemd."""
    kernel_thread = is_kernel_thread(stat, argv)
    kind = kind_of(stat.pid, argv, stat.name, kernel_thread=kernel_thread)
    if kind == "manager" and stat.pid != 1 and is_called_systemd(argv, stat.name) and not _is_systemd(proc, stat.pid):
        kind = "program"
    return Entry(
        ProcessKey(stat.pid, stat.start_ticks),
        stat.ppid,
        stat.process_group,
        stat.session,
        stat.state,
        stat.name,
        argv,
        kind,
        recognise(kind, argv, stat.name),
    )


def _is_systemd(proc: Path, pid: int) -> bool:
    """Say whether a process runs a program of systemd's, or one that may not be looked at: its name tells then."""
    try:
        return SYSTEMD.match(str((proc / str(pid) / "exe").readlink())) is not None
    except OSError:
        return True


def is_kernel_thread(stat: StatLine, argv: tuple[str, ...]) -> bool:
    """Say whether this is a kernel thread: no command line, no memory, and kthreadd (pid 2) or nobody as parent.

    A zombie has neither command line nor memory too, so its state is looked at; in a container pid 2 is anybody, but
    anybody has memory.
    """
    return not argv and stat.rss_pages == 0 and stat.state not in "ZX" and stat.ppid in {0, 2}


def listed_pids(proc: Path) -> list[int]:
    """List the processes there are."""
    # Not Path.iterdir: a Path for each of some thousand processes is what this would cost most.
    with os.scandir(proc) as found:
        return [int(entry.name) for entry in found if entry.name.isdigit()]


def read_table(proc: Path, pids: Iterable[int] | None = None) -> Table:
    """Read all processes (or these)."""
    wanted = listed_pids(proc) if pids is None else pids
    entries = (read_entry(proc, pid) for pid in wanted)
    return {entry.pid: entry for entry in entries if entry is not None}


def children_of(table: Table) -> dict[int, list[Entry]]:
    """Index a table by parent; there is no loop in it, even if the table was read while pids were reused.

    A parent is older than its child (age.py): a loop would have to go once round all pids within one clock tick.
    """
    children: dict[int, list[Entry]] = {}
    for entry in table.values():
        parent = table.get(entry.ppid)
        if parent is not None and is_older(parent.key, entry.key):
            children.setdefault(entry.ppid, []).append(entry)
    return children


def pipe_ends(proc: Path, key: ProcessKey) -> dict[int, int] | None:
    """Map descriptor to pipe inode for a process's open pipes; None when that may not be read or it is gone."""
    ends: dict[int, int] = {}
    try:
        for link in (proc / str(key.pid) / "fd").iterdir():
            try:
                match = PIPE.fullmatch(str(link.readlink()))
            except FileNotFoundError:
                continue
            if match:
                ends[int(link.name)] = int(match[1])
    except OSError:
        return None
    return ends if is_same(proc, key) else None
