"""Remove what a launch left behind where that is certain to be nobody else's, and list the rest with its command."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hangdoc.ending import names
from hangdoc.ending.descriptors import holders
from hangdoc.ending.inventory import SHARED_MEMORY, describe, network
from hangdoc.ending.kinship import user_of
from hangdoc.ending.namespaces import LOCAL_FILE_SYSTEMS, file_system, sees_everybody, sharers
from hangdoc.ending.peers import bound_paths
from hangdoc.ending.records import Removal, Thing
from hangdoc.launch.table import Table
from hangdoc.model.process import ProcessKey

IN_MEMORY = ("shm", "semaphore")


@dataclass(frozen=True)
class Surroundings:
    """Who could use what is left. users: whom the launch ran as; held: identity to pid of whoever has it open now.

    untold: living processes of these users that may not be looked at; shared: processes of other pid namespaces that
    share /dev/shm; hidden: other processes may be invisible; bound: paths of living unix sockets.
    """

    proc: Path
    users: frozenset[int]
    held: dict[tuple[int, int], int]
    untold: tuple[int, ...]
    shared: tuple[int, ...]
    hidden: bool
    bound: frozenset[str]


def survey(proc: Path, table: Table, users: frozenset[int], things: Iterable[Thing]) -> Surroundings:
    """Look at everybody who lives now."""
    living = [entry.key for entry in table.values() if entry.kind != "kernel" and entry.state not in "ZX"]
    held, untold = holders(proc, living, {one.identity for one in things})
    shared: list[int] = []
    if SHARED_MEMORY.is_dir():
        shared = sharers(proc, (key.pid for key in living), SHARED_MEMORY.stat().st_dev)
    bound = frozenset(path for net in _networks(proc, living) for path in bound_paths(net).values())
    # Another user cannot have opened what only its owner may open, and init opens no engine's files.
    untold = [pid for pid in untold if user_of(proc, pid) in users and table[pid].kind != "manager"]
    return Surroundings(proc, users, held, tuple(untold), tuple(shared), not sees_everybody(proc), bound)


def clear(things: Sequence[Thing], around: Surroundings) -> tuple[Removal, ...]:
    """Remove each thing that may go; a thing that went by itself is not in the answer."""
    found: list[Removal] = []
    for thing in things:
        now = describe(thing.kind, thing.path, held=thing.held)
        if now is None or now.identity != thing.identity:
            continue  # the engine removed it, or the name is somebody else's by now
        because = keeps(thing, around)
        if because or not _unlink(thing):
            because = because or "it could not be removed"
            found.append(Removal(thing, False, because, removal_command(thing.path)))
        else:
            found.append(Removal(thing, True))
    return tuple(found)


def removal_command(path: Path) -> str:
    """Return the line that removes a file by hand."""
    return f"rm -- {shlex.quote(str(path))}"


def keeps(thing: Thing, around: Surroundings) -> str:
    """Say why a thing is left; "" when all holds that has to: see docs/kill-clean.md."""
    if thing.user_id not in around.users:
        return "it belongs to another user"
    if not thing.held:
        return "no member held it when the launch was looked at"
    if holder := around.held.get(thing.identity):
        return f"process {holder} has it open"
    if thing.kind in IN_MEMORY:
        return _keeps_in_memory(thing, around)
    if thing.kind == "socket":
        return _keeps_socket(thing, around)
    return _keeps_lock(thing, around)


def _keeps_in_memory(thing: Thing, around: Surroundings) -> str:
    if thing.path.parent != SHARED_MEMORY or names.owner_of(thing.path.name) is None:
        return "its name is not one that the engine or its libraries give"
    if around.untold:
        return f"whether process {around.untold[0]} uses it may not be looked at"
    if around.hidden:
        return "hangdoc is in a container: others may share /dev/shm without being visible here"
    if around.shared:
        return f"process {around.shared[0]} of another pid namespace shares /dev/shm"
    return ""


def _keeps_socket(thing: Thing, around: Surroundings) -> str:
    if not names.ZMQ_PATHS.fullmatch(str(thing.path)):
        return "its name is not one that the engine gives"
    return "somebody still listens there" if str(thing.path) in around.bound else ""


def _keeps_lock(thing: Thing, around: Surroundings) -> str:
    if around.untold:
        return f"whether process {around.untold[0]} uses it may not be looked at"
    if thing.kind == "baton":
        return ""  # whoever created it holds it: that was a member
    kind = file_system(around.proc, thing.identity[0])
    if kind not in LOCAL_FILE_SYSTEMS:
        return f"another machine may hold it: its file system is {kind or 'unknown'}"
    return "hangdoc is in a container: others may hold it without being visible here" if around.hidden else ""


def _networks(proc: Path, keys: Iterable[ProcessKey]) -> list[Path]:
    """Return the net directory of one process of each network namespace."""
    found: dict[str, Path] = {}
    for key in keys:
        if name := network(proc, key.pid):
            found.setdefault(name, proc / str(key.pid) / "net")
    return list(found.values())


def _unlink(thing: Thing) -> bool:
    """Remove a name if it still means the same file: never a directory, never through a link."""
    try:
        directory = os.open(thing.path.parent, os.O_PATH | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        found = os.stat(thing.path.name, dir_fd=directory, follow_symlinks=False)
        wanted = stat.S_ISSOCK if thing.kind == "socket" else stat.S_ISREG
        if (found.st_dev, found.st_ino) != thing.identity or not wanted(found.st_mode):
            return False
        os.unlink(thing.path.name, dir_fd=directory)
    except OSError:
        return False
    finally:
        os.close(directory)
    return True
