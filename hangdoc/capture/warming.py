"""Tells the schedulers that the server still warms up: a mark in the private directory, made by the launcher."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .settings import private_directory

FOLDER = "warming"


class Warming:
    """The mark of this process, and whether any process has one."""

    def __init__(self, directory: Path | None = None) -> None:
        self.folder = (directory or private_directory()) / FOLDER

    def begin(self) -> None:
        """Make this process's mark."""
        self.folder.mkdir(exist_ok=True)
        (self.folder / str(os.getpid())).touch()

    def end(self) -> None:
        """Take this process's mark."""
        (self.folder / str(os.getpid())).unlink(missing_ok=True)

    def goes_on(self) -> bool:
        """Say whether a prefill of now belongs to a warm-up; the launcher takes its mark before it says `ready`."""
        try:
            return any(self.folder.iterdir())
        except FileNotFoundError:
            return False


def marked(function: Callable[..., Any], warming: Warming) -> Callable[..., Any]:
    """Return the warm-up function with the mark around it."""

    def with_the_mark(*args: Any, **kwargs: Any) -> Any:
        warming.begin()
        try:
            return function(*args, **kwargs)
        finally:
            warming.end()

    return with_the_mark


def ready_ends(owner: Any, warming: Warming) -> None:
    """Let `server_status = Up` take the mark first: /health says 200 from then on, and what is sent then is real."""
    name = "server_status"
    theirs = getattr(owner, name, None)

    def get(self: Any) -> Any:
        return theirs.fget(self) if isinstance(theirs, property) and theirs.fget else self.__dict__[name]

    def put(self: Any, value: Any) -> None:
        if getattr(value, "name", "") == "Up":
            warming.end()
        if isinstance(theirs, property) and theirs.fset:
            theirs.fset(self, value)
        else:
            self.__dict__[name] = value

    setattr(owner, name, property(get, put))
