"""Who might be taken for a member and is none: each with the reason, so that nobody has to trust a silent choice."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from hangdoc.ending.descriptors import read_open
from hangdoc.ending.inventory import listening
from hangdoc.ending.kinship import Kin, user_of
from hangdoc.ending.records import LookAlike
from hangdoc.launch.commands import base_name, is_python_name
from hangdoc.launch.forest import Forest
from hangdoc.launch.recognise import engines
from hangdoc.launch.table import Entry
from hangdoc.model.process import Launch

OWN_PYTHON = "another Python program of the same user"
"""How the weakest likeness begins: it comes last in a list."""

MOST_ABOVE = 64
"""Ancestors that are followed upwards; a table read while pids were reused could have a loop. Arbitrary."""


@dataclass(frozen=True)
class _View:
    """The launch as seen by who is not in it."""

    forest: Forest
    members: frozenset[int]
    above: frozenset[int]
    groups: frozenset[int]
    sessions: frozenset[int]
    engine: str
    user: int | None


def look_alikes(forest: Forest, launch: Launch, doubts: dict[int, Kin]) -> tuple[LookAlike, ...]:
    """Return everybody who resembles a member; doubts: reasons of those that may be one after all."""
    members = frozenset(one.key.pid for one in launch.processes)
    entries = [forest.table[pid] for pid in members if pid in forest.table]
    view = _View(
        forest,
        members,
        frozenset(_above(forest, forest.table[launch.root.pid])) - members,
        frozenset(one.group for one in entries),
        frozenset(one.session for one in entries),
        launch.engine,
        user_of(forest.proc, launch.root.pid),
    )
    found: list[LookAlike] = []
    for entry in sorted(forest.table.values(), key=lambda one: one.pid):
        if entry.pid in members or entry.kind == "kernel" or entry.pid == 1:
            continue
        if entry.pid in doubts:
            doubt = doubts[entry.pid]
            because = doubt.doubt + _listens(forest, entry)
            found.append(LookAlike(entry.key, entry.title, because, in_doubt=True, is_tied=doubt.is_tied))
        elif because := next(_reasons(entry, view), ""):
            found.append(LookAlike(entry.key, entry.title, because))
    return tuple(found)


def _reasons(entry: Entry, view: _View) -> Iterator[str]:
    """Yield why an outsider is none, for each likeness that it has; nothing when it has none."""
    if entry.pid == os.getpid() or entry.pid in view.forest.never:
        if entry.pid in view.above or entry.session in view.sessions:
            yield "hangdoc itself, or who called it"
        return
    if entry.pid in view.above:
        yield f"started the launch, but is a {_called(entry)} of its own: never ended"
    home = view.forest.home(entry)
    if home is not None and view.forest.is_engine_root(home.root):
        engine = view.forest.table[home.root].sighting.engine or "engine"
        yield f"of another {engine} launch" + (f", that of {home.root}" if home.root != entry.pid else ", its root")
    if entry.group in view.groups or entry.session in view.sessions:
        where = "process group" if entry.group in view.groups else "session"
        yield f"in the same {where}, but neither started by a member nor of the launch"
    if entry.sighting.engine is None and _mentions(entry):
        yield f"a {_called(entry)} that only names the engine in its command line"
    if _has_gpu(entry, view):
        yield "has a GPU open, but nothing ties it to the launch"
    if _is_own_python(entry, view):
        yield f"{OWN_PYTHON}: nothing ties it to the launch"


def _listens(forest: Forest, entry: Entry) -> str:
    """Say which ports it keeps from others: what is in doubt and has the launch's port is what one looks for."""
    opened = read_open(forest.proc, entry.key)
    ports = sorted({one.number for one in listening(forest.proc, opened)}) if opened is not None else []
    return f"; listens on port {', '.join(map(str, ports))}" if ports else ""


def _called(entry: Entry) -> str:
    # A title of its own may be a whole command line in one word ("python3 -m pytest tests/").
    name = (base_name(entry.argv[0].split(" ")[0]) if entry.argv else "") or entry.comm
    return f"{entry.kind} ({name})"


def _mentions(entry: Entry) -> bool:
    words = " ".join(entry.argv).lower()
    return any(engine.name in words for engine in engines() if engine.name != "generic")


def _has_gpu(entry: Entry, view: _View) -> bool:
    opened = read_open(view.forest.proc, entry.key)
    return opened is not None and bool(opened.gpus())


def _is_own_python(entry: Entry, view: _View) -> bool:
    is_python = bool(entry.argv) and is_python_name(base_name(entry.argv[0]))
    return is_python and user_of(view.forest.proc, entry.pid) == view.user


def _above(forest: Forest, entry: Entry) -> Iterator[int]:
    above = forest.table.get(entry.ppid)
    for _ in range(MOST_ABOVE):
        if above is None or above.pid == 1:
            return
        yield above.pid
        above = forest.table.get(above.ppid)
