"""What goes to standard error: a failure as one line with its exit code, and progress where somebody watches."""

from __future__ import annotations

import errno
import os
import resource
import sys
import traceback

from hangdoc.errors import ExitCode, HangdocError
from hangdoc.report.plain import plain

DEBUG_VARIABLE = "HANGDOC_DEBUG"
"""Set to anything, it shows the traceback of a failure."""


def complain(error: BaseException) -> ExitCode:
    """Print the one line that explains the error, return the exit code."""
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exception(error)
    sentence, remedy, code = _explained(error)
    if sentence:
        say(f"hangdoc: {sentence.rstrip('.')}." + (f" {_sentence(remedy)}" if remedy else ""))
    return code


def say(text: str) -> None:
    """Write to standard error; what cannot be told there must not become a second failure."""
    try:
        for line in text.split("\n"):
            sys.stderr.write(plain(line) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return


def progress(line: str) -> None:
    """Tell a person at a terminal what hangdoc is doing."""
    if sys.stderr is not None and sys.stderr.isatty():
        say(line)


def _explained(error: BaseException) -> tuple[str, str, ExitCode]:
    if isinstance(error, HangdocError):
        return error.message, error.remedy, error.exit_code
    if isinstance(error, KeyboardInterrupt):
        return "interrupted before there was a result", "", ExitCode.UNDETERMINED
    if isinstance(error, BrokenPipeError):  # nobody reads any more; a diagnosis has its own code, see emit_diagnosis
        return "", "", ExitCode.OK
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        may = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return f"hangdoc may open only {may} files at a time here", "raise the limit: ulimit -n 1024", ExitCode.USAGE
    wrong_use = getattr(error, "format_message", None)  # of typer's own errors, whose class has moved before
    if callable(wrong_use):
        command = getattr(getattr(error, "ctx", None), "command_path", "hangdoc")
        return str(wrong_use()), f"{command} --help shows how to use it", ExitCode.USAGE
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    remedy = f"set {DEBUG_VARIABLE}=1 to see where, and please report it"
    return f"a fault of hangdoc itself ({what})", remedy, ExitCode.USAGE


def _sentence(text: str) -> str:
    """Begin with a capital, unless the first word is a command to type, and end with a full stop."""
    first = text.split(" ", 1)[0]
    if first.isalpha() and first not in ("hangdoc", "pipx", "sudo"):
        text = text[0].upper() + text[1:]
    return text if "\n" in text or text.endswith("?") else text.rstrip(".") + "."
