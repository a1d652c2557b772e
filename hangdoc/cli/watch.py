"""`hangdoc watch`: diagnose a live launch, once or for as long as it takes."""

from __future__ import annotations

from math import ceil
from typing import Annotated, Literal

import typer

from hangdoc.cli.options import Json, NoColor, NoRedact, Patience, Pid, Port, Record, patience_of


def watch(
    pid: Pid = None,
    port: Port = None,
    once: Annotated[bool, typer.Option("--once", help="One observation, one report, one exit code.")] = False,
    window: Annotated[float, typer.Option(metavar="S", min=3, max=3600, help="Seconds to observe at least.")] = 5.0,
    max_window: Annotated[
        float, typer.Option(metavar="S", min=3, max=3600, help="Seconds to go on while the readings do not agree.")
    ] = 30.0,
    until: Annotated[
        Literal["ready", "hang", "exit"] | None, typer.Option(help="Follow until this is reached.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(metavar="S", min=1, help="Follow for this many seconds at most.")
    ] = None,
    patience: Patience = None,
    http_generate: Annotated[
        bool, typer.Option("--http-generate", help="Also GET /health_generate: sends a token through the scheduler.")
    ] = False,
    record: Record = None,
    no_redact: NoRedact = False,
    as_json: Json = False,
    no_color: NoColor = False,
) -> int:
    """Say what a launch is doing, who has to move and why.

    Any process of the launch finds all of it. Without --once the launch is
    followed: one line at each change, a whole report at the end.

    \b
    Examples:
      hangdoc watch 4711 --once
      hangdoc watch --port 30000 --until ready --timeout 900

    \b
    Exit codes: 0 nothing hangs, 1 it hangs or crashed, 2 wrong use,
    3 not to be told, 4 cannot be observed.
    """
    if once and (until is not None or timeout is not None):
        raise typer.BadParameter("--once is one observation: --until and --timeout are for following")
    if no_redact and record is None:
        raise typer.BadParameter("--no-redact is about --record FILE: nothing else is kept")
    from hangdoc.cli.recorded import watch_on, watch_once
    from hangdoc.observe.attach import Setting
    from hangdoc.observe.follow import Goal
    from hangdoc.observe.look import Window

    span = Window(window, max(window, max_window))
    kept_rounds, patience_s = ceil(span.most_s) + 2, patience_of(patience)
    setting = Setting(kept_rounds=kept_rounds, patience_s=patience_s, http_generate=http_generate, redact=not no_redact)
    if once:
        return watch_once(pid, port, setting, record, span, as_json=as_json, no_color=no_color)
    goal = Goal(until, timeout, patience_s=span.most_s)
    return watch_on(pid, port, setting, record, goal, as_json=as_json, no_color=no_color)
