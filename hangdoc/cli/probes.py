"""`hangdoc probes`: what can be read on this machine, and if not, why and what would change that."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hangdoc.cli.options import Json, NoColor


def probes(
    as_json: Json = False,
    no_color: NoColor = False,
    proc: Annotated[Path, typer.Option(hidden=True, help="Another /proc, for tests.")] = Path("/proc"),
) -> int:
    """List the probes and what each one can read here.

    A reading that is not to be had is never guessed: the diagnosis names it as
    missing, with the same reason and remedy as this list.

    \b
    Example: hangdoc probes
    """
    from hangdoc import discovery
    from hangdoc.cli.output import emit, emit_json, to_terminal
    from hangdoc.report.abilities import Ability, as_plain, parts

    abilities = [Ability(probe.name, probe.title, probe.reads, probe.check(proc)) for probe in discovery.probes()]
    if as_json:
        emit_json([as_plain(ability) for ability in abilities])
    else:
        emit(to_terminal(parts(abilities), no_color=no_color))
    return 0
