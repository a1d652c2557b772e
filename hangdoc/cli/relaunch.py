"""`hangdoc relaunch`: start a launch again, and watch it until it is ready."""

from __future__ import annotations

import typer

from hangdoc.cli import relaunch_options as options
from hangdoc.cli import relaunch_wishes as read
from hangdoc.cli.command import command_of
from hangdoc.cli.options import Json, NoColor, Patience, patience_of


def relaunch(
    context: typer.Context,
    pid: options.Old = None,
    trace: options.Trace = None,
    profile: options.Profile = "auto",
    set_: options.Set = None,
    map_: options.Map = None,
    log: options.Log = None,
    capture_layers: options.Layers = None,
    capture_dir: options.Samples = None,
    capture_format: options.Form = None,
    prompts: options.Prompts = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    kill_on_hang: options.KillOnHang = False,
    until: options.Until = "ready",
    timeout: options.Timeout = None,
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
      hangdoc relaunch 4711 --capture-layers 3,31,59 --capture-dir DIR --prompts FILE
      hangdoc relaunch --from stuck.hangtrace --map path-1=/models/kimi
      hangdoc relaunch --log server.log -- python -m sglang.launch_server ...

    \b
    Exit codes: 0 ready, 1 it hangs or crashed, or the old one could not be
    ended, 2 wrong use or declined, 3 not to be told, 4 not yours or not there.
    """
    argv = command_of(context)
    read.which(pid, trace, argv, has_map=bool(map_))
    capture = read.wish_of(capture_layers, capture_dir, capture_format)
    read.check_prompts(prompts, capture, until)
    from hangdoc.cli.restarting import restart
    from hangdoc.relaunch.planning import Wishes

    wishes = Wishes(
        pid=pid,
        trace=trace,
        argv=argv,
        profile=profile,
        capture=capture,
        prompts=prompts,
        set_=read.pairs_of("--set", set_),
        map_=read.pairs_of("--map", map_),
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
