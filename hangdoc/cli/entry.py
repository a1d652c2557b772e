"""The first thing that the program `hangdoc` runs: what probes ask every few seconds does not wait for the rest."""

from __future__ import annotations

import signal
import sys
from types import FrameType

INTERRUPTED = 3
"""ExitCode.UNDETERMINED, which is not imported yet when it is needed here."""

DECLINED = 2
"""ExitCode.USAGE: to interrupt kill-clean before its first step is to decline."""


def main() -> None:
    """Run the command line of this process; never returns. Ctrl-C during the imports is no fault either."""
    try:
        if sys.argv[1:2] == ["kill-clean"]:
            # Until the ending itself takes them (ending/interruption.py); one that is ignored stays so.
            for number in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is signal.SIG_DFL:
                    signal.signal(number, _as_ctrl_c)
        _run(sys.argv[1:])
    except KeyboardInterrupt:
        if sys.argv[1:2] == ["kill-clean"]:
            sys.stderr.write("hangdoc: interrupted. Nothing was touched.\n")
            sys.exit(DECLINED)
        sys.stderr.write("hangdoc: interrupted before there was a result.\n")
        sys.exit(INTERRUPTED)


def _as_ctrl_c(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _run(arguments: list[str]) -> None:
    """Answer `healthcheck --state FILE`, written so, without the command line, which costs six times as much."""
    match arguments:
        case ["healthcheck", "--state", file]:
            from pathlib import Path

            from hangdoc.unattended.health import answer

            sys.exit(answer(Path(file)))
        case _:
            from hangdoc.cli.main import main as run

            run()
