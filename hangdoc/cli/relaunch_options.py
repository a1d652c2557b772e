"""The options of `hangdoc relaunch`, and what they become."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from hangdoc.samples.wish import Wish

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

DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan and touch nothing.")]
Yes = Annotated[bool, typer.Option("--yes", help="End the old launch without asking; needed without a terminal.")]
KillOnHang = Annotated[bool, typer.Option("--kill-on-hang", help="End the new launch, too, when it hangs or crashes.")]
Until = Annotated[
    Literal["ready", "hang", "exit"], typer.Option(help="Watch until this; a hang ends the watch in any case.")
]
Timeout = Annotated[float | None, typer.Option(metavar="S", min=1, help="Watch for this many seconds.")]
Layers = Annotated[
    str | None,
    typer.Option(
        "--capture-layers", metavar="N,N,N", help="Capture the inputs of these layers, counted from 0, from prefill."
    ),
]
Samples = Annotated[Path | None, typer.Option("--capture-dir", metavar="DIR", help="Where the samples go.")]
Form = Annotated[
    Literal["specforge", "safetensors"] | None,
    typer.Option("--capture-format", help="How samples are written; specforge if left out."),
]

Prompts = Annotated[
    Path | None,
    typer.Option(
        "--prompts", metavar="FILE", help="Feed these prompts when it is ready (JSON Lines), for --capture-*."
    ),
]


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
        found[name] = value
    return found
