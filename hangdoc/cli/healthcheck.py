"""`hangdoc healthcheck`: what a startup or liveness probe asks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hangdoc.cli.options import Json


def healthcheck(
    state: Annotated[Path, typer.Option("--state", metavar="FILE", help="What hangdoc watch --state keeps.")],
    as_json: Json = False,
) -> int:
    """Say whether a watched launch is known to hang, for Kubernetes' probes.

    Exit code 1 only for a confirmed hang or crash. A slow start, a likely
    hang, an undetermined, stale, missing or damaged state are 0, with a
    warning on standard error: a probe must not end what is only not known.

    \b
    Example: hangdoc healthcheck --state /run/hangdoc/state.json
    """
    from hangdoc.unattended.health import answer

    return answer(state, as_json=as_json)
