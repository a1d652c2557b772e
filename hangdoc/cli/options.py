"""Options that several commands share: one spelling, one help text."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from hangdoc.model.patience import Stage

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
NoRedact = Annotated[
    bool, typer.Option("--no-redact", help="Record names, paths and arguments as they are; every report says so.")
]
HtmlFile = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write one HTML page that loads nothing; - prints it.")
]
Markdown = Annotated[
    bool, typer.Option("--markdown", help="Print Markdown for an issue, with the fields of SGLang's bug form.")
]
Interval = Annotated[float, typer.Option(metavar="S", min=0.1, max=60, help="Seconds from one round to the next.")]
Patience = Annotated[
    list[str] | None,
    typer.Option(
        "--patience",
        metavar="PHASE=SECONDS",
        help="How long a phase may show nothing before silence speaks for a hang; repeatable.",
    ),
]


def patience_of(given: Iterable[str] | None) -> dict[Stage, float]:
    """Read --patience, the last of several for a phase; BadParameter when one is not PHASE=SECONDS."""
    found: dict[Stage, float] = {}
    for text in given or ():
        stage, _, number = text.partition("=")
        if stage not in get_args(Stage):
            raise typer.BadParameter(f"--patience {text}: the phase is one of {', '.join(get_args(Stage))}")
        found[cast("Stage", stage)] = _seconds(text, number)
    return found


def _seconds(text: str, number: str) -> float:
    try:
        seconds = float(number)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise typer.BadParameter(f"--patience {text}: write PHASE=SECONDS with a number above 0, as in warmup=900")
    return seconds
