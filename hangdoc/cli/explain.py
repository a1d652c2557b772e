"""`hangdoc explain`: a hypothesis or a playbook in full."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from hangdoc.cli.options import Json


def explain(
    name: Annotated[
        str | None,
        typer.Argument(metavar="ID|NAME", show_default=False, help="As in a report; left out: list all of them."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Explain a hypothesis or a playbook.

    \b
    Examples:
      hangdoc explain HD101
      hangdoc explain blocked-on-lock
    """
    from hangdoc.cli.output import emit, emit_json
    from hangdoc.report.library import library, look_up

    entries = library()
    if name is not None:
        entry = look_up(name, entries)
        if as_json:
            emit_json(asdict(entry))
        else:
            emit(entry.text().rstrip() + "\n")
    elif as_json:
        emit_json([{"id": entry.id, "name": entry.name, "verdict": entry.verdict} for entry in entries.values()])
    else:
        widest = max(len(entry.name) for entry in entries.values())
        rows = (f"{entry.id or '-':<6} {entry.name:<{widest}}  {entry.verdict or ''}" for entry in entries.values())
        emit("".join(f"{row.rstrip()}\n" for row in rows))
    return 0
