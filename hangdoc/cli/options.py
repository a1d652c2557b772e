"""Options that several commands share: one spelling, one help text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Pid = Annotated[
    int | None,
    typer.Argument(
        metavar="PID",
        min=1,
        max=4_194_304,
        show_default=False,
        help="Any member of the launch; left out: your only launch.",
    ),
]
Port = Annotated[
    int | None,
    typer.Option(metavar="PORT", min=1, max=65535, help="Take the launch that listens on this port, or is to."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
NoColor = Annotated[bool, typer.Option("--no-color", help="No colours and no other terminal styles.")]
Record = Annotated[
    Path | None, typer.Option("--record", metavar="FILE", help="Also write what was read to this trace.")
]
Interval = Annotated[float, typer.Option(metavar="S", min=0.1, max=60, help="Seconds from one round to the next.")]
