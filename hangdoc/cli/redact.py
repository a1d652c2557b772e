"""`hangdoc redact`: a log or an older trace without what must not leave the machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hangdoc.cli.options import Json


def redact(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH", show_default=False, help="Logs (also .gz, .zst, ...), traces; - too."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where to; else beside it: x.log to x.redacted.log. - is the output."
        ),
    ] = None,
    also: Annotated[
        list[str] | None, typer.Option("--also", metavar="WORD", help="Take this word out as well; repeatable.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Take out of logs and traces what must not leave the machine.

    Keys, tokens, passwords, prompts, paths, users, hosts and addresses that are
    recognised become tokens that stay equal within a file, so that diagnose and
    replay say the same. The input stays as it is; nothing that exists is overwritten. A trace
    keeps only what is known to be harmless; a log is free text: what is known
    to be private goes, so look through it before you share it.

    \b
    Examples:
      hangdoc redact server.log
      hangdoc redact old.hangtrace -o shared.hangtrace
      kubectl logs llm-0 | hangdoc redact - --also acme | less

    \b
    Exit code 2: a file cannot be read or written, or exists already.
    """
    from hangdoc.cli.output import emit, emit_json
    from hangdoc.cli.standard_output import emit_bytes
    from hangdoc.redaction import Wishes, redact_all

    if output is not None and len(paths) > 1:
        raise typer.BadParameter(f"-o is one file, and {len(paths)} are to be redacted: leave it out")
    if as_json and (output == Path("-") or (output is None and Path("-") in paths)):
        raise typer.BadParameter("the redacted log and --json both go to standard output: give -o FILE")
    done = redact_all(paths, Wishes(output, tuple(also or ())), emit_bytes)
    if as_json:
        emit_json([{"input": str(one.source), "output": str(one.target), "tokens": one.tokens} for one in done])
    elif not any(one.is_standard_output for one in done):
        emit("".join(f"{one.source} -> {one.target}: {one.tokens} texts became tokens\n" for one in done))
    return 0
