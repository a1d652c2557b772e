"""The first thing that the program `hangdoc` runs: what probes ask every few seconds does not wait for the rest."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Run the command line of this process; never returns.

    `healthcheck --state FILE`, written exactly so, is answered without building the command line, which costs ten
    times what the answer does.
    """
    match sys.argv[1:]:
        case ["healthcheck", "--state", file]:
            from hangdoc.unattended.health import answer

            sys.exit(answer(Path(file)))
        case _:
            from hangdoc.cli.main import main as run

            run()
