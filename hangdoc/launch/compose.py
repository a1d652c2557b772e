"""Put a launch together: members, engine, settings, version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hangdoc.launch.forest import Forest, Home
from hangdoc.launch.limits import read_environment, read_limits
from hangdoc.launch.recognise import engine_named
from hangdoc.launch.roles import Setting, describe
from hangdoc.launch.settings import read_settings
from hangdoc.launch.table import Entry
from hangdoc.launch.version import read_version
from hangdoc.launch.wrapping import wrappers
from hangdoc.model.limit import LimitName
from hangdoc.model.process import EngineName, Launch


def compose(forest: Forest, root: int) -> Launch:
    """Build the launch of a root."""
    homes = launch_members(forest, root)
    entries = [forest.table[pid] for pid in sorted(homes)]
    engine = engine_of(forest.table[root], entries)
    settings = launch_settings(forest, root, engine)
    launcher = forest.table[root].key if forest.has_launcher(root) else None
    setting = Setting(launcher, engine, settings, forest.proc)
    processes = [describe(entry, homes[entry.pid].because, setting) for entry in entries]
    return Launch(
        root=forest.table[root].key,
        engine=engine,
        engine_version=read_version(forest.proc, engine_named(engine), _by_closeness(root, entries)),
        settings=settings,
        limits=_limits(forest, root, homes, engine, settings),
        processes=tuple(sorted(processes, key=lambda process: process.key)),
    )


def launch_members(forest: Forest, root: int) -> dict[int, Home]:
    """Return every member of a launch, wrappers included, and why it is one."""
    found = forest.members(root)
    found.setdefault(root, Home(root, "the process that was named"))
    return {**wrappers(forest, root), **found}


def engine_of(root: Entry, members: list[Entry]) -> EngineName:
    """Say which engine a launch runs: what torchrun or an own script starts counts, not torchrun or the script."""
    seen = Counter(name for e in members if (name := e.sighting.engine) is not None and name != "torchrun")
    if root.sighting.engine not in {None, "torchrun"} or not seen:
        return root.sighting.engine or "generic"
    return seen.most_common(1)[0][0]


def program_of(forest: Forest, root: int, engine: EngineName | None = None) -> Entry | None:
    """Return the launcher whose command line holds the options: the root, or the engine's launcher below torchrun."""
    entry = forest.table[root]
    wanted = engine or entry.sighting.engine
    if entry.sighting.is_launcher and entry.sighting.engine == wanted:
        return entry
    inner = (e for e in forest.table.values() if e.sighting.is_launcher and e.sighting.engine == wanted)
    return next((e for e in inner if (home := forest.home(e)) is not None and home.root == root), None)


def launch_settings(forest: Forest, root: int, engine: EngineName) -> dict[str, str]:
    """Read the options; none are known when the launcher is gone or is an own script."""
    launcher = program_of(forest, root, engine)
    return read_settings(launcher.argv, engine_named(engine).options) if launcher is not None else {}


def _limits(
    forest: Forest, root: int, homes: Iterable[int], engine: EngineName, settings: dict[str, str]
) -> dict[LimitName, float]:
    limits = engine_named(engine).limits
    launcher = program_of(forest, root, engine)
    names = {name for limit in limits for name in limit.variables}
    return read_limits(limits, settings, _environment(forest, root if launcher is None else launcher.pid, homes, names))


def _environment(forest: Forest, launcher: int, homes: Iterable[int], names: set[str]) -> dict[str, str] | None:
    """Return these variables of the launcher, or as its ranks have them: what starts those may set them anew.

    A rank that has given itself a title has written it over its environment, which then reads as nothing.
    """
    found = read_environment(forest.proc, launcher, names)
    for pid in sorted(homes):
        of_member = read_environment(forest.proc, pid, names) if forest.table[pid].kind == "program" else None
        if of_member is not None:
            found = {**(found or {}), **of_member}
    return found


def _by_closeness(root: int, entries: list[Entry]) -> list[Entry]:
    # The launcher and Python's helpers keep their environment readable; a title overwrites it.
    return sorted((e for e in entries if e.kind == "program"), key=lambda e: (e.pid != root, e.sighting.is_titled))
