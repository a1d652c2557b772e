"""Recognise engine processes by the engines' tables: which engine, launcher or not, which role and rank."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from hangdoc.discovery import modules
from hangdoc.launch.commands import Kind, base_name, command_head, is_multiprocessing_child, is_python_name
from hangdoc.model.engine import Engine, Title
from hangdoc.model.process import EngineName, Role


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a command line tells. engine: None for an unknown program.

    is_launcher: it is what an engine is started with; is_titled: it carries a title that only this engine gives.
    is_kin: one of Python's or an engine's own child processes, whose parent is the program proper.
    """

    engine: EngineName | None = None
    role: Role = "other"
    rank: dict[str, int] = field(default_factory=dict)
    is_launcher: bool = False
    is_titled: bool = False
    is_kin: bool = False


UNKNOWN = Sighting()


@cache
def engines() -> tuple[Engine, ...]:
    """Return every engine's tables, the generic one last."""
    found: list[Engine] = [module.ENGINE for module in modules("hangdoc.engines")]
    return tuple(sorted(found, key=lambda engine: engine.name == "generic"))


def engine_named(name: EngineName) -> Engine:
    """Return one engine's tables."""
    return next(engine for engine in engines() if engine.name == name)


def recognise(kind: Kind, argv: tuple[str, ...], comm: str) -> Sighting:
    """Look a process up in the engines' tables.

    Shells, wrappers and hosts are never looked up: they carry other programs' command lines as arguments.
    """
    if kind not in {"program", "companion"}:
        return UNKNOWN
    launcher = _launcher_engine(argv) if kind == "program" and argv else None
    if launcher is not None:
        return Sighting(launcher, "launcher", is_launcher=True)
    # A title is the whole of argv[0]; what stands behind it is what the process had been started with.
    for text in (argv[0] if argv else comm, " ".join(argv)):
        for engine in engines():
            for known in engine.titles:
                match = known.pattern.search(text)
                if match:
                    return _titled(engine, known, match.groupdict())
    return Sighting(is_kin=True) if is_multiprocessing_child(argv) else UNKNOWN


def _titled(engine: Engine, title: Title, groups: dict[str, str | None]) -> Sighting:
    rank = {name: int(value) for name, value in groups.items() if value is not None}
    if engine.name == "generic":
        return Sighting(None, title.role, rank, is_kin=title.role == "compiler")
    return Sighting(engine.name, title.role, rank, is_launcher=title.role == "launcher", is_titled=True, is_kin=True)


def _launcher_engine(argv: tuple[str, ...]) -> EngineName | None:
    head = command_head(argv)
    for engine in engines():
        if any(pattern.search(head) for pattern in engine.launchers):
            # An unknown executable with a launcher's words in its arguments is an editor or a grep.
            name = base_name(argv[0])
            is_own = is_python_name(name) or engine.distribution in name or name in {"torchrun", engine.name}
            return engine.name if is_own else None
    return None
