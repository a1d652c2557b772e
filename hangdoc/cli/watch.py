"""`hangdoc watch`: diagnose a live launch, once or for as long as it takes."""

from __future__ import annotations

from math import ceil
from typing import Annotated, Literal

import typer

from hangdoc.cli.good_starts import GoodStarts, baseline_of
from hangdoc.cli.options import Json, NoColor, Patience, Pid, Port, Record, patience_of


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
    baseline: GoodStarts = None,
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
    from hangdoc.cli.live import follow, look_once
    from hangdoc.cli.output import emit_diagnosis
    from hangdoc.observe.attach import Setting, attach
    from hangdoc.observe.follow import Goal
    from hangdoc.observe.look import Window

    span = Window(window, max(window, max_window))
    kept_rounds = ceil(span.most_s) + 2
    setting = Setting(
        record=record,
        kept_rounds=kept_rounds,
        patience_s=patience_of(patience),
        http_generate=http_generate,
        baseline=baseline_of(baseline),
    )
    with attach(pid, port, setting) as attached:
        if not once:
            goal = Goal(until, timeout, patience_s=span.most_s)
            return follow(attached, goal, as_json=as_json, no_color=no_color)
        diagnosis, code = look_once(attached, span, as_json=as_json)
    emit_diagnosis(diagnosis, as_json=as_json, no_color=no_color)
    return code
