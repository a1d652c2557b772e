"""`hangdoc kill-clean`: end one launch exactly, and prove that nothing of it is left."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import Annotated

import typer

from hangdoc.cli.options import Json, NoColor, Port


def kill_clean(
    pid: Annotated[
        int | None,
        typer.Argument(
            metavar="PID",
            min=1,
            max=4_194_304,
            show_default=False,
            help="A member of the launch, nobody above it; left out: your orphaned engine processes.",
        ),
    ] = None,
    port: Port = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan and touch nothing, even with --yes.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask; needed without a terminal.")] = False,
    include: Annotated[
        list[int] | None, typer.Option("--include", metavar="PID", help="End this process, too; may be repeated.")
    ] = None,
    snapshot: Annotated[
        bool, typer.Option("--snapshot/--no-snapshot", help="Record the launch to a trace before the first signal.")
    ] = True,
    record: Annotated[
        Path | None, typer.Option("--record", metavar="FILE", help="Where the trace goes; else a file here.")
    ] = None,
    gpu_timeout: Annotated[
        float, typer.Option(metavar="S", min=0, max=3600, help="Seconds to wait for GPU memory to come back.")
    ] = 30.0,
    as_json: Json = False,
    no_color: NoColor = False,
) -> int:
    """End one launch exactly, and prove that nothing of it is left.

    Every member is listed with why it belongs, every look-alike with why not,
    before anybody is asked. What it never touches: docs/kill-clean.md.

    \b
    Examples:
      hangdoc kill-clean 4711 --dry-run
      hangdoc kill-clean --port 30000 --yes

    \b
    Exit codes: 0 all is gone, 1 something survived or was left, or Ctrl-C,
    SIGTERM or SIGHUP in the middle, 2 wrong use or declined,
    3 GPU memory could not be compared, 4 not yours or not there.
    """
    from hangdoc.cli.asking import Wishes
    from hangdoc.cli.ending import end

    if include and pid is None and port is None:
        raise typer.BadParameter("--include adds to one launch: give its PID or --port, too")
    if record is not None and not snapshot:
        raise typer.BadParameter("--record says where the snapshot goes, --no-snapshot that there is none")
    if isnan(gpu_timeout):
        raise typer.BadParameter("--gpu-timeout is a number of seconds")
    wishes = Wishes(tuple(include or ()), dry_run, yes, snapshot, record, gpu_timeout, as_json, no_color)
    return end(pid, port, wishes)
