"""`hangdoc diagnose`: what logs, saved stack dumps and traces can prove, and what they cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from hangdoc.cli.good_starts import GoodStarts, baseline_of
from hangdoc.cli.options import Json, NoColor


def diagnose(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH", show_default=False, help="Logs, directories of logs, dumps; - is the input."),
    ],
    baseline: GoodStarts = None,
    now: Annotated[
        str | None,
        typer.Option(metavar="TIME", help='Until when the log stayed so: now, or "2026-11-29 14:05:00" on its clock.'),
    ] = None,
    engine: Annotated[
        Literal["sglang", "vllm", "torchrun", "generic"] | None, typer.Option(help="Who wrote it, if not recognised.")
    ] = None,
    launch: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Which launch in a file of several; else the last one.")
    ] = None,
    as_json: Json = False,
    no_color: NoColor = False,
) -> int:
    """Diagnose a launch from its log, as far as that goes.

    Logs may be packed (.gz, .zst, .bz2, .xz), rotated, or one for each rank;
    py-spy dumps may be text or JSON, inside a log, too. Flight recorders'
    dumps and answers of NCCL's RAS are read as well. Silence alone proves
    no hang: --now tells until when nothing came, --baseline what is usual.

    \b
    Examples:
      hangdoc diagnose server.log
      hangdoc diagnose server.log --now now --baseline good.log
      kubectl logs llm-0 | hangdoc diagnose -

    \b
    Exit codes: 0 healthy or a start that moved, 1 it hung or crashed,
    2 wrong use or no log, 3 not to be told from a log.
    """
    from hangdoc import discovery
    from hangdoc.cli.failure import progress, say
    from hangdoc.cli.output import emit_diagnosis
    from hangdoc.diagnosis import diagnose as diagnosis_of
    from hangdoc.logs.moment import moment
    from hangdoc.logs.read import Wishes, read
    from hangdoc.report.exit_code import exit_code
    from hangdoc.report.line import first_answer
    from hangdoc.trace.records import Trace

    good = baseline_of(baseline)

    def answer(trace: Trace) -> None:
        say(first_answer(diagnosis_of(trace, "log", good)))

    named = None if engine is None else discovery.engine(engine)
    wishes = Wishes(named, launch, None if now is None else moment(now), answer, say)
    if Path("-") in paths:
        progress("hangdoc: reading standard input until it ends or only trickles; Ctrl-C diagnoses what came.")
    trace = read(paths, wishes)
    kind: Literal["log", "trace"] = "log" if trace.header.launch.known_from == "log" else "trace"
    diagnosis = diagnosis_of(trace, kind, good)
    emit_diagnosis(diagnosis, as_json=as_json, no_color=no_color)
    return exit_code(diagnosis.verdict, diagnosis.grade)
