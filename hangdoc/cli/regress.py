"""`hangdoc regress`: recorded hangs as tests, each trace against what has to be said of it."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from hangdoc.cli.options import Json, NoColor


def regress(
    directory: Annotated[Path, typer.Argument(metavar="DIR", show_default=False, help="Where the traces are.")],
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Also write the results as JUnit's XML.")
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Make the expectations fit, new ones included; asks before it writes.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --update: do not ask.")] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", metavar="N", min=1, max=256, help="Processes; else one for each CPU.")
    ] = None,
    as_json: Json = False,
    no_color: NoColor = False,
) -> int:
    """Replay every trace below DIR and compare what is said of it.

    NAME.hangtrace has its expectation in NAME.expect.toml beside it: fields of
    the document (verdict, grade, phase, culprits, ...), accept (verdicts that
    pass as well), grade_floor and ruled_out (hypotheses). See docs/regress.md.

    \b
    Examples:
      hangdoc regress tests/hangs --junit hangs.xml
      hangdoc regress tests/hangs --update

    \b
    Exit codes: 0 all as expected, 5 a diagnosis differs, 2 a trace or an
    expectation is absent or cannot be read.
    """
    from hangdoc.cli.consent import consent
    from hangdoc.cli.failure import say
    from hangdoc.cli.output import emit, emit_json, to_terminal
    from hangdoc.cli.report_file import report_file
    from hangdoc.regress.cases import cases
    from hangdoc.regress.run import exit_code, run
    from hangdoc.regress.shown import as_plain, parts
    from hangdoc.regress.shown import junit as junit_of
    from hangdoc.regress.update import changes, write

    with nullcontext() if junit is None else report_file(junit) as file:
        results = list(run(cases(directory), jobs))
        if file is not None:
            file.write(junit_of(results))
    if as_json:
        emit_json(as_plain(results))
    else:
        emit(to_terminal(parts(results), no_color=no_color))
    if not update or not (found := changes(results)):
        return exit_code(results)
    for change in found:
        say("\n".join([f"{change.path}:", *(f"  {line}" for line in change.words)]))
    consent(f"Write {len(found)} expectation{'s' * (len(found) != 1)}?", yes=yes)
    for change in found:
        write(change)
    say(f"hangdoc: {len(found)} expectation{'s' * (len(found) != 1)} written")
    changed = {change.name for change in found}
    return exit_code([one for one in results if one.case.name not in changed])
