"""What the options of `hangdoc relaunch` become."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from hangdoc.samples.wish import Wish

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""Names of environment variables that shells can set and read: POSIX 8.1, and small letters."""


def wish_of(layers: str | None, directory: Path | None, form: str | None) -> Wish | None:
    """Read the options of a capture; BadParameter when one goes with another that is not there."""
    if layers is None and directory is None and form is None:
        return None
    if layers is None or directory is None:
        raise typer.BadParameter("--capture-layers and --capture-dir go together")
    from hangdoc.samples.wish import wish

    return wish(layers, directory, form or "specforge")


def check_prompts(prompts: Path | None, wish: Wish | None, until: str) -> None:
    """Raise BadParameter where prompts cannot be fed, HangdocError (2) for a file that has a line which is none."""
    if prompts is None:
        return
    if wish is None or until != "ready":
        raise typer.BadParameter("--prompts feeds a capture: it goes with --capture-layers, and with --until ready")
    from hangdoc.relaunch.prompts import check_prompts as check

    check(prompts)


def which(pid: int | None, trace: Path | None, argv: tuple[str, ...], *, has_map: bool) -> None:
    """Raise BadParameter unless exactly one launch is named."""
    given = [pid is not None, trace is not None, bool(argv)]
    if sum(given) != 1:
        raise typer.BadParameter("say what to start: a PID, or --from TRACE, or a command line after --; one of them")
    if has_map and trace is None:
        raise typer.BadParameter("--map fills in what a redacted trace lacks: it goes with --from")


def pairs_of(option: str, given: Iterable[str] | None) -> dict[str, str]:
    """Read NAME=VALUE, the last one of several for a name; BadParameter when one has no name."""
    found: dict[str, str] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise typer.BadParameter(f"{option}: write {'NAME' if option == '--set' else 'TOKEN'}=VALUE")
        if option == "--set" and VARIABLE.fullmatch(name) is None:
            raise typer.BadParameter(f"--set: {name!r} is no name of a variable")
        found[name] = value
    return found
