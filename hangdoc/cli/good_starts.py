"""The option --baseline: good starts that a log is compared with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hangdoc.features.baseline import Baseline

GoodStarts = Annotated[
    Path | None,
    typer.Option("--baseline", metavar="PATH", help="A log or trace of a good start, or a directory of them."),
]


def baseline_of(path: Path | None) -> Baseline | None:
    """Read --baseline; HangdocError (exit 2) when there is no good start at that path."""
    if path is None:
        return None
    from hangdoc.logs.good import read_baseline

    return read_baseline(path)
