"""What a launch has outside its processes, looked at before the first signal: afterwards nobody can say any more."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from hangdoc.ending import names
from hangdoc.ending.descriptors import Identity, OpenFiles, identities, lives, mapped, read_open
from hangdoc.ending.peers import bound_paths
from hangdoc.ending.records import Before, GpuReading, Member, Port, Thing
from hangdoc.errors import HangdocError
from hangdoc.model.process import Launch
from hangdoc.procfs.locks import parse_lock_line
from hangdoc.procfs.tcp import parse_tcp

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  the kernel's place for it


def take_stock(proc: Path, launch: Launch, members: Iterable[Member], gpus: GpuReading) -> Before:
    """Read descriptors, mappings, sockets and locks of every member."""
    things: dict[tuple[str, Identity], Thing] = {}
    opened: dict[int, tuple[str, ...]] = {}
    ports: set[Port] = set()
    listeners: dict[int, tuple[int, ...]] = {}
    unseen: list[int] = []
    for member in members:
        files = read_open(proc, member.key)
        if files is None:
            unseen += [member.key.pid] if lives(proc, member.key) else []
            continue
        if files.gpus():
            opened[member.key.pid] = files.gpus()
        own = set(listening(proc, files))
        if own:
            listeners[member.key.pid] = tuple(sorted(one.number for one in own))
        ports |= own
        for thing in (*_segments(proc, files), *_sockets(proc, files), *_locks(proc, files)):
            known = things.get((thing.kind, thing.identity))
            things[thing.kind, thing.identity] = thing if known is None or thing.held else known
    return Before(
        things=tuple(sorted(things.values(), key=lambda one: (one.kind, str(one.path)))),
        ports=_ordered(ports | _wanted_port(proc, launch, ports), launch),
        opened=opened,
        listeners=listeners,
        gpus=gpus,
        unseen=tuple(unseen),
    )


def listening(proc: Path, files: OpenFiles) -> Iterator[Port]:
    """Yield the TCP ports that a process listens on."""
    inodes = files.sockets()
    net = proc / str(files.key.pid) / "net"
    namespace = network(proc, files.key.pid)
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            rows = parse_tcp((net / name).read_bytes())
            yield from (Port(one.local_port, namespace, True) for one in rows if one.listens and one.inode in inodes)


def listened(net: Path) -> set[int]:
    """Return the ports that anybody listens on in a network namespace."""
    found: set[int] = set()
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            found |= {one.local_port for one in parse_tcp((net / name).read_bytes()) if one.listens}
    return found


def network(proc: Path, pid: int) -> str:
    """Return the name of a process's network namespace; "" when that may not be looked at."""
    try:
        return str((proc / str(pid) / "ns" / "net").readlink())
    except OSError:
        return ""


def describe(kind: str, path: Path, *, held: bool) -> Thing | None:
    """Make the record of a file as it is now; None when there is none of this name."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return Thing(kind, path, (found.st_dev, found.st_ino), found.st_uid, held)


def _ordered(ports: set[Port], launch: Launch) -> tuple[Port, ...]:
    """Sort by number, the launch's own port first."""
    own = launch.settings.get("port", "")
    return tuple(sorted(ports, key=lambda one: (str(one.number) != own, one.number)))


def _wanted_port(proc: Path, launch: Launch, ports: set[Port]) -> set[Port]:
    """Return the port that the launch was started with, unless it listens on it already."""
    number = launch.settings.get("port", "")
    if (
        launch.engine not in {"sglang", "vllm"}
        or not number.isdigit()
        or any(one.number == int(number) for one in ports)
    ):
        return set()
    return {Port(int(number), network(proc, launch.root.pid), False)}


def _segments(proc: Path, files: OpenFiles) -> Iterator[Thing]:
    """Yield the files of /dev/shm that a process has open or mapped and that still have their name."""
    seen = {identity: path for _, identity, path in identities(proc, files) if path.startswith(f"{SHARED_MEMORY}/")}
    seen |= mapped(proc, files.key) or {}
    for identity, shown in seen.items():
        path = Path(shown)
        whose = names.owner_of(path.name)
        thing = describe(whose[0] if whose else "shm", path, held=True)
        if thing is not None and thing.identity == identity:
            yield thing


def _sockets(proc: Path, files: OpenFiles) -> Iterator[Thing]:
    """Yield the paths that a process has bound unix sockets to."""
    inodes = files.sockets()
    bound = bound_paths(proc / str(files.key.pid) / "net") if inodes else {}
    for path in {path for inode, path in bound.items() if inode in inodes}:
        thing = describe("socket", Path(path), held=True)
        if thing is not None and _is_socket(Path(path)):
            yield thing


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.lstat().st_mode)
    except OSError:
        return False


def _locks(proc: Path, files: OpenFiles) -> Iterator[Thing]:
    """Yield lock files that a process has open; held: it has locked it, or it is a baton, held by its creator."""
    for number, identity, shown in identities(proc, files):
        path = Path(shown)
        is_baton = path.name == names.BATON and _is_build(path.parent)
        if not is_baton and not names.LOCK_FILES.fullmatch(shown):
            continue
        held = is_baton or _has_locked(proc, files.key.pid, number)
        thing = describe("baton" if is_baton else "lock", path, held=held)
        if thing is not None and thing.identity == identity:
            yield thing


def _is_build(directory: Path) -> bool:
    return "torch_extensions" in directory.parts or any((directory / name).exists() for name in names.BUILD_FILES)


def _has_locked(proc: Path, pid: int, number: int) -> bool:
    try:
        return any(not one.waits for one in parse_lock_line((proc / str(pid) / "fdinfo" / str(number)).read_bytes()))
    except (OSError, HangdocError):
        return False


def leftovers(user_id: int, directory: Path = SHARED_MEMORY) -> list[Thing]:
    """List the files of /dev/shm that have an engine's name and belong to a user."""
    found: list[Thing] = []
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            whose = names.owner_of(entry.name)
            thing = describe(whose[0], Path(entry.path), held=False) if whose else None
            if thing is not None and thing.user_id == user_id:
                found.append(thing)
    return sorted(found, key=lambda one: str(one.path))
