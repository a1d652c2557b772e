"""Does something to a module as soon as it is imported, without changing its file."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Action = Callable[[ModuleType], None]


class AfterImport(importlib.abc.MetaPathFinder):
    """Stands first in line for the watched names only, and leaves finding and loading them to the others."""

    def __init__(self, actions: dict[str, Action]) -> None:
        self.actions = actions
        self._asking: set[tuple[int, str]] = set()

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what the other finders say, with a loader that acts after it has loaded."""
        asked = (threading.get_ident(), fullname)
        if fullname not in self.actions or asked in self._asking:
            return None
        self._asking.add(asked)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._asking.discard(asked)
        if spec is not None and spec.loader is not None:
            _act_after(spec.loader, self.actions[fullname])
        return spec


def _act_after(loader: Any, action: Action) -> None:
    load = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        load(module)
        action(module)

    loader.exec_module = exec_module


def watch(actions: dict[str, Action]) -> None:
    """Act now on the modules that are there, and on the others once they are imported."""
    coming = {}
    for name, action in actions.items():
        module = sys.modules.get(name)
        if module is None:
            coming[name] = action
        else:
            action(module)
    if coming:
        sys.meta_path.insert(0, AfterImport(coming))
