"""`hangdoc relaunch`: start a launch again, and watch it until it is ready."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from hangdoc.cli.command import command_of
from hangdoc.cli.options import Json, NoColor, Patience, patience_of
from hangdoc.cli.relaunch_options import Log, Map, Old, Profile, Set, Trace, pairs_of, which


def relaunch(
    context: typer.Context,
    pid: Old = None,
    trace: Trace = None,
    profile: Profile = "auto",
    set_: Set = None,
    map_: Map = None,
    log: Log = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and touch nothing.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="End the old launch without asking; needed without a terminal.")
    ] = False,
    kill_on_hang: Annotated[
        bool, typer.Option("--kill-on-hang", help="End the new launch, too, when it hangs or crashes.")
    ] = False,
    until: Annotated[
        Literal["ready", "hang", "exit"], typer.Option(help="Watch until this; a hang ends the watch in any case.")
    ] = "ready",
    timeout: Annotated[float | None, typer.Option(metavar="S", min=1, help="Watch for this many seconds.")] = None,
    patience: Patience = None,
    as_json: Json = False,
    no_color: NoColor = False,
) -> int:
    """Start a launch again, and watch it until it is ready.

    PID is any process of a launch that runs: it is ended first, as kill-clean
    does, and started again with its command, directory, environment and limits.
    On cards that need it a profile adds options: the plan says which, and why.
    The server gets a session of its own and stays when hangdoc leaves.

    \b
    Examples:
      hangdoc relaunch 4711 --dry-run
      hangdoc relaunch 4711 --yes --kill-on-hang
      hangdoc relaunch --from stuck.hangtrace --map path-1=/models/kimi
      hangdoc relaunch --log server.log -- python -m sglang.launch_server ...

    \b
    Exit codes: 0 ready, 1 it hangs or crashed, or the old one could not be
    ended, 2 wrong use or declined, 3 not to be told, 4 not yours or not there.
    """
    argv = command_of(context)
    which(pid, trace, argv, has_map=bool(map_))
    from hangdoc.cli.restarting import restart
    from hangdoc.relaunch.planning import Wishes

    wishes = Wishes(
        pid=pid,
        trace=trace,
        argv=argv,
        profile=profile,
        set_=pairs_of("--set", set_),
        map_=pairs_of("--map", map_),
        log=log,
        dry_run=dry_run,
        yes=yes,
        kill_on_hang=kill_on_hang,
        until=until,
        timeout_s=timeout,
        patience_s=patience_of(patience),
        as_json=as_json,
        no_color=no_color,
    )
    return restart(wishes)
