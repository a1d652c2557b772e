"""What a capture of hidden states adds to a launch: looked for and refused before anything is touched."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

from hangdoc.errors import HangdocError
from hangdoc.relaunch.engine import EngineCommand
from hangdoc.relaunch.records import Command, Plan
from hangdoc.samples import needs
from hangdoc.samples.install import Install, find
from hangdoc.samples.needs import Additions
from hangdoc.samples.support import check, refuse
from hangdoc.samples.wish import Wish


@dataclass(frozen=True)
class Capture:
    """A capture that is possible. flags: what the command gets for it; notes: what could not be checked."""

    wish: Wish
    install: Install
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def way(self) -> str:
        """How the code gets into the server."""
        return needs.way_of(self.install)


def look(wish: Wish | None, command: Command, engine: EngineCommand | None) -> Capture | None:
    """Look for all that a capture needs; HangdocError (2) when a layer or anything else is not there."""
    if wish is None:
        return None
    if engine is None or engine.name != "sglang" or engine.interpreter is None:
        message = "--capture-layers: no SGLang launcher of a Python that is there is in the command"
        raise HangdocError(
            f"{message}: nothing was started or ended", "give the launcher itself, not a script around it"
        )
    install = find(engine.interpreter.called, command.environment, command.cwd)
    support = check(wish, install, command.argv[engine.begin :], command.environment, command.cwd)
    refuse(support)
    _refuse_unwritable(wish)
    return Capture(wish, install, notes=support.notes)


def _refuse_unwritable(wish: Wish) -> None:
    """Raise HangdocError (2) when the directory of samples can neither be written nor made."""
    existing = next(path for path in (wish.directory, *wish.directory.parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise HangdocError(f"--capture-dir {wish.directory} cannot be written", "take another directory")


def with_flags(
    capture: Capture | None, command: Command, engine: EngineCommand | None
) -> tuple[Command, Capture | None]:
    """Return the command with the options that the capture needs and it lacks."""
    if capture is None or engine is None:
        return command, capture
    flags = needs.flags(capture.install, command.argv[engine.begin :])
    return replace(command, argv=(*command.argv, *flags)), replace(capture, flags=flags)


def ready_to_start(plan: Plan) -> tuple[Command, Additions | None]:
    """Make the private directory of the capture's code, if any; return the command with it. HangdocError (2) if not."""
    command, capture = plan.command, plan.capture
    if capture is None:
        return command, None
    additions = needs.prepare(capture.wish, capture.install, command.argv, command.environment)
    return replace(command, environment={**command.environment, **additions.environment}), additions


def forget(additions: Additions | None) -> None:
    """Take the private directory away again: of a launch that is over, or was not started."""
    if additions is not None:
        needs.remove(additions)


def described(capture: Capture) -> Iterator[str]:
    """Yield what is captured and how, one line each."""
    layers, wish = ", ".join(map(str, capture.wish.layers)), capture.wish
    yield f"inputs of layers {layers}, and the state after the final norm, as {wish.form} in {wish.directory}"
    yield f"through a {capture.way}: a private directory comes first on PYTHONPATH; no file of SGLang is changed"
    if capture.flags:
        yield f"added for it: {' '.join(capture.flags)} (cached prefixes and replayed graphs would leave no rows)"
    yield from capture.notes
