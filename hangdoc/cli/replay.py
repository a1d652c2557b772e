"""`hangdoc replay`: the diagnosis of a recorded trace, the same on every run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hangdoc.cli.options import Json, NoColor, Patience, patience_of


def replay(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", show_default=False, help="What hangdoc record wrote.")],
    expect: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="JSON or TOML with the fields that the document must have; else exit 5."),
    ] = None,
    patience: Patience = None,
    as_json: Json = False,
    no_color: NoColor = False,
) -> int:
    """Diagnose a recorded trace.

    The exit code is that of the diagnosis. With --expect it is 5 when a field
    that FILE names differs: objects are compared field by field, lists entry
    by entry (FILE may name fewer fields of an entry, never fewer entries).
    --patience counts before what was set for the recording.

    \b
    Examples:
      hangdoc replay stuck.hangtrace
      hangdoc replay stuck.hangtrace --expect stuck.expect.toml
    """
    from hangdoc.cli.failure import say
    from hangdoc.cli.output import emit_diagnosis
    from hangdoc.diagnosis import diagnose
    from hangdoc.errors import ExitCode
    from hangdoc.observe.replay import read_trace
    from hangdoc.report.document import document
    from hangdoc.report.exit_code import exit_code
    from hangdoc.report.expectation import differences, read_expectation

    wanted = None if expect is None else read_expectation(expect)
    diagnosis = diagnose(read_trace(trace, patience_of(patience)), kind="trace")
    emit_diagnosis(diagnosis, as_json=as_json, no_color=no_color)
    if wanted is not None and (found := differences(wanted, document(diagnosis))):
        say("\n".join(f"hangdoc: {difference}" for difference in found))
        return ExitCode.DIFFERS
    return exit_code(diagnosis.verdict, diagnosis.grade)
