"""Find probes, hypotheses and engines: an entry point names a package, each public module in it is one item."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from importlib.metadata import entry_points
from types import ModuleType

from hangdoc.model.engine import Engine
from hangdoc.sampling.probe import Probe


@cache
def modules(group: str) -> tuple[ModuleType, ...]:
    """Return every public module of every package that the entry-point group names, sorted by name.

    A new file is found without reinstalling or registering it; another distribution joins with an entry point of
    the same group ("hangdoc.probes", "hangdoc.hypotheses", "hangdoc.engines", "hangdoc.playbooks").
    """
    packages = {point.value for point in entry_points(group=group)}
    found = [module for name in sorted(packages) for module in _public_modules(importlib.import_module(name))]
    return tuple(found)


def _public_modules(package: ModuleType) -> list[ModuleType]:
    names = sorted(item.name for item in pkgutil.iter_modules(package.__path__) if not item.name.startswith("_"))
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]


def probes() -> tuple[Probe, ...]:
    """Return every probe, sorted by the name of its module."""
    return tuple(module.PROBE for module in modules("hangdoc.probes"))


def engine(name: str) -> Engine:
    """Return an engine's tables; an engine that nobody describes has empty ones."""
    for module in modules("hangdoc.engines"):
        if module.ENGINE.name == name:
            found: Engine = module.ENGINE
            return found
    return Engine(name="generic")
