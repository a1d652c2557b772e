"""The options of `hangdoc relaunch`, and what they become."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

Old = Annotated[
    int | None,
    typer.Argument(
        metavar="PID", min=1, max=4_194_304, show_default=False, help="Any process of the launch to start again."
    ),
]
Trace = Annotated[
    Path | None, typer.Option("--from", metavar="TRACE", help="Take the command from this trace instead.")
]
Profile = Annotated[
    str,
    typer.Option(metavar="NAME|FILE", help="auto (what NVML says of the GPUs), sm120, none, or the file of a profile."),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A variable of the new launch's environment; repeatable."),
]
Map = Annotated[
    list[str] | None,
    typer.Option(
        "--map", metavar="TOKEN=VALUE", help="What a token of the redacted trace stands for (path-1=/m); repeatable."
    ),
]
Log = Annotated[
    Path | None,
    typer.Option("--log", metavar="FILE", help="Its output; else hangdoc-relaunch-TIME.log in this directory."),
]


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
        found[name] = value
    return found
