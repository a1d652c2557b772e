"""The options of `hangdoc relaunch`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

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
