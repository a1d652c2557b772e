"""The options of `hangdoc watch` that only following has, and what they become."""

from __future__ import annotations

from os.path import isdir, lexists
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from hangdoc.unattended.metrics import Address

Exec = Annotated[
    bool, typer.Option("--exec", help="Start the launch after -- and watch it; its exit code becomes this one.")
]
Until = Annotated[Literal["ready", "hang", "exit"] | None, typer.Option(help="Follow until this is reached.")]
Timeout = Annotated[float | None, typer.Option(metavar="S", min=1, help="Follow for this many seconds at most.")]
RecordTo = Annotated[
    Path | None,
    typer.Option(
        "--record",
        metavar="PATH",
        help="Also write what was read: with --once to this trace; following, to this folder (a rolling window, and "
        "the evidence of each hang), or to a trace when it ends in .hangtrace.",
    ),
]
RecordLimit = Annotated[
    int, typer.Option("--record-limit", metavar="MB", min=1, help="Size that the folder of --record may reach.")
]
OnHang = Annotated[
    str | None,
    typer.Option(
        "--on-hang",
        metavar="CMD",
        help="Run this shell command once for each hang, with the document on standard input and in HANGDOC_*.",
    ),
]
State = Annotated[
    Path | None, typer.Option("--state", metavar="FILE", help="Keep the state here, for hangdoc healthcheck.")
]
MetricsPort = Annotated[
    str | None,
    typer.Option(
        "--metrics-port", metavar="[HOST:]PORT", help="Serve metrics for Prometheus; HOST is 127.0.0.1 if left out."
    ),
]


def address_of(text: str | None) -> Address | None:
    """Read --metrics-port; BadParameter when it is none."""
    from hangdoc.unattended.metrics import Address

    try:
        return None if text is None else Address.parse(text)
    except ValueError as error:
        raise typer.BadParameter(f"--metrics-port {text}: write PORT or HOST:PORT, as in 0.0.0.0:9400") from error


def is_folder(record: Path) -> bool:
    """Say whether following records to a folder of this name: it is one, or neither a file nor called like a trace."""
    # Not Path's own, which raise for a place that may not be looked into: what opens it says so in one line.
    return isdir(record) or not (record.suffix == ".hangtrace" or lexists(record))  # noqa: PTH112


def check(command: tuple[str, ...], *, is_exec: bool, once: bool, unattended: bool, named: bool, ends: bool) -> None:
    """Raise BadParameter for options that contradict each other. named, ends: a launch, an end is given."""
    if once and ends:
        raise typer.BadParameter("--once is one observation: --until and --timeout are for following")
    if is_exec != bool(command):
        raise typer.BadParameter(
            "--exec goes with a command: hangdoc watch --exec -- python -m sglang.launch_server ..."
        )
    if is_exec and (once or named or ends):
        raise typer.BadParameter(
            "--exec watches what it starts until it ends: no PID, --port, --once, --until, --timeout"
        )
    if once and unattended:
        raise typer.BadParameter("--once is one observation: --on-hang, --state and --metrics-port are for following")
