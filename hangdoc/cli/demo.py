"""`hangdoc demo`: start a small sick launch, diagnose it, end it."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from hangdoc.cli.options import Json, NoColor, Record


def demo(
    name: Annotated[
        Literal["busy-wait", "blocked", "slow-start"], typer.Argument(help="What the launch suffers from.")
    ] = "busy-wait",
    record: Record = None,
    as_json: Json = False,
    no_color: NoColor = False,
) -> int:
    """Start a small sick launch, diagnose it, end it.

    Four Python processes, no GPU, nothing of yours is touched. It takes about
    ten seconds. Exit code 0: the diagnosis was the right one.

    \b
    Examples:
      hangdoc demo
      hangdoc demo blocked
    """
    from hangdoc.cli.failure import say
    from hangdoc.cli.live import look_once
    from hangdoc.cli.output import emit_diagnosis
    from hangdoc.demo.start import sick_launch
    from hangdoc.errors import ExitCode
    from hangdoc.observe.attach import Setting, attach
    from hangdoc.observe.look import Window

    with sick_launch(name) as patient:
        say(f"hangdoc demo: a launch of {len(patient.pidfds)} processes runs, pid {patient.pid}; its illness: {name}")
        say(f"hangdoc demo: the same as hangdoc watch {patient.pid} --once")
        with attach(patient.pid, None, Setting(record=record)) as attached:
            diagnosis, code = look_once(attached, Window(most_s=15.0), as_json=as_json)
    emit_diagnosis(diagnosis, as_json=as_json, no_color=no_color)
    say(f"hangdoc demo: the launch has ended, all {len(patient.pidfds)} processes are gone")
    if diagnosis.verdict == name:
        return ExitCode.OK
    say(f"hangdoc demo: that is not the illness, which is {name}")
    return code or ExitCode.UNDETERMINED
