"""`hangdoc report`: a recorded trace as one HTML page, or as Markdown for an issue."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hangdoc.cli.options import HtmlFile, Json, Markdown, Patience, patience_of


def report(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", show_default=False, help="What hangdoc record wrote.")],
    html: HtmlFile = None,
    markdown: Markdown = False,
    no_redact: Annotated[
        bool, typer.Option("--no-redact", help="Leave names of an unredacted trace as they are; the report says so.")
    ] = False,
    patience: Patience = None,
    as_json: Json = False,
) -> int:
    """Make a report of a recorded trace that can be handed on.

    The page is one file for a ticket: who has to move and what to type next,
    then the evidence, the timeline, the waits, the threads, the stacks, the
    GPUs, the log, and what could not be read. Names, paths and free text
    are tokens, whatever the trace has. The exit code is that of the diagnosis.

    \b
    Examples:
      hangdoc report stuck.hangtrace --html stuck.html
      hangdoc report stuck.hangtrace --markdown | gh issue create -F - ...
    """
    from hangdoc.cli.handed import Handed
    from hangdoc.cli.handing_on import opened
    from hangdoc.cli.output import emit_diagnosis
    from hangdoc.observe.replay import read_trace
    from hangdoc.report.exit_code import exit_code

    if html is None and not markdown and not as_json:
        raise typer.BadParameter("say which report: --html FILE, --markdown, or both; hangdoc replay shows it here")
    with opened(Handed(html, markdown=markdown, as_json=as_json)) as handing_on:
        read = read_trace(trace, patience_of(patience))
        diagnosis = handing_on.hand_on(read, "trace", keep_names=no_redact)
    if as_json:
        emit_diagnosis(diagnosis, as_json=True)
    return exit_code(diagnosis.verdict, diagnosis.grade)
