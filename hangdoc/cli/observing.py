"""How a watch observes: its options, and the setting that they make."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hangdoc.cli.failure import progress
from hangdoc.cli.good_starts import baseline_of
from hangdoc.cli.options import patience_of

if TYPE_CHECKING:
    from hangdoc.observe.attach import Setting
    from hangdoc.observe.look import Window

Once = Annotated[bool, typer.Option("--once", help="One observation, one report, one exit code.")]
Least = Annotated[float, typer.Option(metavar="S", min=3, max=3600, help="Seconds to observe at least.")]
Most = Annotated[
    float, typer.Option(metavar="S", min=3, max=3600, help="Seconds to go on while the readings do not agree.")
]
HttpGenerate = Annotated[
    bool, typer.Option("--http-generate", help="Also GET /health_generate: sends a token through the scheduler.")
]
Native = Annotated[
    bool,
    typer.Option("--native", help="If it hangs, also take native stacks at the end: stops each rank for a moment."),
]
Coredump = Annotated[
    bool,
    typer.Option(
        "--cuda-coredump",
        help="If it hangs, also ask CUDA which kernel is stuck: the server may die of it; "
        "needs CUDA_ENABLE_USER_TRIGGERED_COREDUMP=1 at its start.",
    ),
]


def span_of(least_s: float, most_s: float) -> Window:
    """Return the time that one observation takes."""
    from hangdoc.observe.look import Window

    return Window(least_s, max(least_s, most_s))


def setting_of(
    span: Window,
    patience: list[str] | None,
    baseline: Path | None,
    *,
    http_generate: bool,
    no_redact: bool,
    native: bool = False,
    coredump: bool = False,
) -> Setting:
    """Return how to observe; BadParameter or HangdocError (exit 2) for an option that says nothing sensible."""
    from hangdoc.observe.attach import Setting

    if coredump:
        progress("hangdoc: if it hangs, CUDA is asked for a core dump: the server may die of it")
    return Setting(
        kept_rounds=ceil(span.most_s) + 2,
        patience_s=patience_of(patience),
        http_generate=http_generate,
        baseline=baseline_of(baseline),
        redact=not no_redact,
        native=native,
        coredump=coredump,
    )
