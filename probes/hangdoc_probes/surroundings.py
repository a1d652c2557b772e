"""What the launch stands in: room in /dev/shm, its port, its environment's proxy, leftovers of earlier launches."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from hangdoc.launch.ports import holders
from hangdoc.launch.settings import read_settings
from hangdoc.launch.table import Entry, Table, read_table
from hangdoc.model.engine import Option
from hangdoc.model.link import LinkEnd
from hangdoc.model.process import Launch
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Sample
from hangdoc.model.surroundings import Room, Surroundings
from hangdoc.sampling.probe import Context, Probe, Round, Session
from hangdoc_probes._proxies import goes_through_proxy
from hangdoc_probes._reading import missing
from hangdoc_probes._reading import read_table as read_file

NAME = "surroundings"
SHARED_MEMORY = "/dev/shm"  # noqa: S108  the launcher's, which is looked at and not used
SOON = 2
"""Readings that are taken whether the round is thorough or not: a first observation needs two."""
HOST = Option("host", ("--host",), "127.0.0.1")
"""Where the launcher sends its own warm-up request; SGLang's default."""


class SurroundingsSession:
    """Looks twice at first, later in thorough rounds only: what stands around a launch changes seldom."""

    def __init__(self, context: Context) -> None:
        self._proc, self._launch = context.proc, context.launch
        self._left = SOON

    def take(self, now: Round) -> Iterable[Sample]:
        """Read once for the whole launch."""
        if not now.thorough and not self._left:
            return
        self._left = max(0, self._left - 1)
        taken_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        members = {process.key.pid for process in now.processes}
        yield Sample(probe=NAME, process=None, taken_ns=taken_ns, reading=Known(self._read(members)))

    def close(self) -> None:
        """Nothing is held."""

    def _read(self, members: set[int]) -> Surroundings:
        table = read_table(self._proc)
        root = self._launch.root.pid
        others, own = self._listeners(table, members)
        return Surroundings(
            shared_memory=_room(f"{self._proc}/{root}/root{SHARED_MEMORY}"),
            listeners=others,
            listening=own,
            proxied=_proxied(self._proc, self._launch),
            orphans=Known(tuple(_end(entry) for entry in table.values() if _is_orphan(entry, table, members))),
        )

    def _listeners(self, table: Table, members: set[int]) -> tuple[Reading[tuple[LinkEnd, ...]], Reading[bool]]:
        """Return who outside the launch listens on its port, and whether a member does."""
        port = self._launch.settings.get("port", "")
        if not port.isdigit():
            unknown = Missing(NAME, "unsupported", "the launch's port is not known")
            return unknown, unknown
        found = holders(self._proc, table, int(port))
        if found.is_hidden:
            hidden = Missing(NAME, "denied", "somebody listens on the launch's port who may not be looked at")
            return hidden, hidden
        others = tuple(_end(table[pid]) for pid in sorted(found.pids - members) if pid in table)
        return Known(others), Known(bool(found.pids & members))


def _end(entry: Entry) -> LinkEnd:
    return LinkEnd(entry.key, member=False, command=entry.comm)


def _is_orphan(entry: Entry, table: Table, members: set[int]) -> bool:
    """Tell whether a process is an engine's and none of a launch: nobody of an engine is its parent.

    Fails for an engine whose launcher no table recognises.
    """
    if entry.pid in members or not entry.sighting.is_titled or entry.state in "ZX":
        return False
    parent = table.get(entry.ppid)
    return parent is None or (parent.sighting.engine is None and parent.pid not in members)


def _room(path: str) -> Reading[Room]:
    try:
        found = os.statvfs(path)
    except OSError as error:
        return missing(NAME, error)
    return Known(Room(found.f_frsize * found.f_blocks, found.f_frsize * found.f_bavail))


def _proxied(proc: Path, launch: Launch) -> Reading[bool]:
    try:
        environment = read_file(f"{proc}/{launch.root.pid}/environ")
    except OSError as error:
        return missing(NAME, error)
    argv = next((process.argv for process in launch.processes if process.key == launch.root), ())
    host = read_settings(argv, (HOST,)).get(HOST.name)
    if host is None:
        return Missing(NAME, "unsupported", "the launch's host stands in a file")
    return Known(goes_through_proxy(environment, host))


def open_session(context: Context) -> Session:
    """Start reading a launch."""
    return SurroundingsSession(context)


def check(proc: Path) -> Reading[str]:
    """Say whether the environment of a process can be seen here."""
    try:
        read_file(f"{proc}/self/environ")
    except OSError as error:
        return missing(NAME, error)
    return Known("shared memory, port, proxy and leftovers, of one's own launches, or of any as root")


PROBE = Probe(
    name=NAME,
    title="room in /dev/shm, the launch's port, its proxy, leftover engine processes",
    open=open_session,
    check=check,
    every=4,
    background=True,
    deadline_s=5.0,
    host=True,
    reads=(SHARED_MEMORY, "/proc/net/tcp", "/proc/PID/environ", "/proc/PID/cmdline"),
)
