"""`hangdoc record`: write what can be read of a launch to a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hangdoc.cli.observing import Native
from hangdoc.cli.options import Interval, Json, NoRedact, Patience, Pid, Port, patience_of


def record(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The trace to write; it should end in .hangtrace.")
    ],
    pid: Pid = None,
    port: Port = None,
    duration: Annotated[float, typer.Option(metavar="S", min=0.1, help="Seconds to record.")] = 30.0,
    interval: Interval = 1.0,
    patience: Patience = None,
    expect: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write what regress has to find again, if its verdict is confirmed."),
    ] = None,
    native: Native = False,
    no_redact: NoRedact = False,
    as_json: Json = False,
) -> int:
    """Record a launch to a redacted trace that replay diagnoses, anywhere.

    Ctrl-C ends the recording early; the trace is whole then, too. A recording
    that is cut (a full disk, SIGKILL) is readable up to the cut.

    \b
    Examples:
      hangdoc record 4711 -o stuck.hangtrace --duration 60
      hangdoc record 4711 -o hangs/a.hangtrace --expect hangs/a.expect.toml

    \b
    Exit code 3: --expect was given and the verdict is not confirmed.
    """
    from hangdoc.cli.live import announce
    from hangdoc.cli.output import emit, emit_json
    from hangdoc.observe.attach import Setting, attach
    from hangdoc.observe.look import NO_REASONING, Window, look
    from hangdoc.observe.reasoning import for_recording
    from hangdoc.observe.ring import KEPT_ROUNDS
    from hangdoc.regress.confirmed import expectation_of, refuse_existing

    if expect is not None:
        refuse_existing(expect)
    kept = KEPT_ROUNDS if native else 2  # rounds that the verdict before a native stack is made from
    setting = Setting(interval, output, kept, patience_of(patience), redact=not no_redact, native=native)
    with attach(pid, port, setting) as attached:
        announce(attached, f"for {duration:g} s")
        look(attached, Window(duration, duration), for_recording() if native else NO_REASONING)
        rounds = attached.tape.rounds
    if as_json:
        emit_json({"trace": str(output), "rounds": rounds})
    else:
        how = "recorded as they were, not redacted" if no_redact else "recorded"
        emit(f"{output}: {rounds} rounds {how}; diagnose it with hangdoc replay {output}\n")
    return 0 if expect is None else expectation_of(output, expect)
