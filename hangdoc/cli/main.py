"""The command line: every command, and the one place where a failure becomes one line and an exit code."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated

import typer

from hangdoc import __version__
from hangdoc.cli.closed import Closed
from hangdoc.cli.command import TakesCommand
from hangdoc.cli.escape import Commands, OneCommand, escaped
from hangdoc.cli.failure import complain
from hangdoc.cli.output import emit
from hangdoc.errors import ExitCode, HangdocError

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
COMMANDS = (
    *("watch", "relaunch", "diagnose", "record", "replay", "report", "regress", "redact", "kill_clean", "capture"),
    *("healthcheck", "probes", "explain", "demo"),
)
"""Each is a file beside this one; in the order of --help."""
for name in COMMANDS:
    command = getattr(import_module(f"hangdoc.cli.{name}"), name)
    app.command(cls=TakesCommand if name in {"watch", "relaunch"} else OneCommand)(command)


def _show_version(wanted: bool) -> None:
    if wanted:
        emit(f"hangdoc {__version__}\n")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Say whether a silent LLM-server launch is busy-waiting, blocked or slow.

    hangdoc reads a running launch from outside, for seconds, and says who has
    to move and why the other explanations are out.

    \b
    Example: hangdoc watch 4711 --once
    """


def main() -> None:
    """Run the command line of this process; never returns."""
    if sys.stdout is None:  # closed by the caller
        sys.stdout = Closed()
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    if not arguments:
        run(["--help"])
        return ExitCode.USAGE
    try:
        return int(app(arguments, prog_name="hangdoc", standalone_mode=False) or ExitCode.OK)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - a fault must not be 1, which means a hang
        return complain(_told(escaped(error), arguments[0]))


def _told(error: BaseException, command: str) -> BaseException:
    """Make of Ctrl-C what it means to a command: from its first step on kill-clean reports an interruption itself."""
    if isinstance(error, KeyboardInterrupt) and command == "kill-clean":
        return HangdocError("interrupted", "nothing was touched")
    return error
