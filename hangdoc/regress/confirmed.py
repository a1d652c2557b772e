"""The expectation of a new recording: written only from a verdict that is confirmed."""

from __future__ import annotations

from pathlib import Path

from hangdoc.diagnosis import diagnose
from hangdoc.errors import ExitCode, HangdocError
from hangdoc.observe.replay import read_trace
from hangdoc.regress.wanted import text_of, wanted
from hangdoc.report.document import document


def refuse_existing(path: Path) -> None:
    """Raise when there is something at the path already: a recording must not be made in vain."""
    if path.exists():
        raise HangdocError(f"{path} exists: it is left as it is", "choose another file, or remove it")


def expectation_of(trace: Path, path: Path) -> ExitCode:
    """Write what a replay of the trace says, if that is confirmed.

    HangdocError: with exit code 3 when it is not (nothing to hold anybody to), with 2 when it cannot be written.
    """
    said = document(diagnose(read_trace(trace), kind="trace"))
    if said["grade"] != "confirmed":
        message = f"{path} is not written: the verdict of {trace} ({said['verdict']}, {said['grade']}) is not confirmed"
        remedy = "look at hangdoc replay, and write the expectation by hand (docs/regress.md)"
        raise HangdocError(message, remedy, ExitCode.UNDETERMINED)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text_of(wanted(said)))
    except OSError as error:
        raise HangdocError(f"{path} cannot be written: {error.strerror}", "choose another file") from error
    return ExitCode.OK
