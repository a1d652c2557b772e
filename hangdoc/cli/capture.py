"""`hangdoc capture`: how far a capture of hidden states is, and whether its samples are whole."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from hangdoc.cli.options import Json


class Action(StrEnum):
    """What is done with the directory."""

    status = "status"
    verify = "verify"


def capture(
    action: Annotated[Action, typer.Argument(help="status: what is there; verify: read and check every sample.")],
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The directory of samples.")],
    as_json: Json = False,
) -> int:
    """Say what a directory of captured hidden states holds, or check it.

    Exit code 1: capture has stopped by itself (status), a sample is damaged
    (verify) or no regular file (both). A number that is missing is told and is no damage: a sample with
    NaN is never written. Neither changes anything; a capture may be running.

    \b
    Examples: hangdoc capture status /dev/shm/states
              hangdoc capture verify /dev/shm/states --json
    """
    from hangdoc.cli.output import emit, emit_json
    from hangdoc.errors import ExitCode, HangdocError
    from hangdoc.report.plain import plain
    from hangdoc.samples import words
    from hangdoc.samples.directory import read
    from hangdoc.samples.status import is_stopped, status
    from hangdoc.samples.verify import verify

    try:
        if action is Action.status:
            document = status(read(directory))
            lines, is_bad = words.status_lines(document), is_stopped(document) or bool(document["damaged"])
        else:
            document = verify(read(directory))
            lines, is_bad = words.verify_lines(document), bool(document["damaged"])
    except OSError as error:
        raise HangdocError(f"{directory} cannot be read: {error}", "give a directory that you can read") from error
    if as_json:
        emit_json(document)
    else:
        emit("".join(plain(line) + "\n" for line in lines))
    return ExitCode.HANG if is_bad else ExitCode.OK
