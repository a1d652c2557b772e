"""Results to standard output, as text or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from io import StringIO, TextIOWrapper
from os import environ
from typing import TYPE_CHECKING, Any

from hangdoc.cli.standard_output import standard_output

if (
    TYPE_CHECKING
):  # these are imported when there is something to show: neither --help nor an observation waits for them
    from rich.console import RenderableType

    from hangdoc.model.diagnosis import Diagnosis

WIDTH = 80
"""Columns where there is no terminal to ask."""

WIDEST = 100
"""Columns used of a wide terminal: longer lines are hard to read. Arbitrary."""


def emit(text: str) -> None:
    """Write a result; BrokenPipeError when nobody reads any more, and then nothing is left to be flushed."""
    with standard_output() as output:
        if isinstance(output, TextIOWrapper):
            output.reconfigure(errors="replace")  # a headline with an umlaut is no fault in a C locale
        output.write(text)
        output.flush()


def emit_json(value: Any) -> None:
    """Write a value as JSON in ASCII."""
    emit(json.dumps(value, indent=2, ensure_ascii=True) + "\n")


def emit_diagnosis(diagnosis: Diagnosis, *, as_json: bool, no_color: bool = False) -> None:
    """Write a diagnosis as the document of the contract or as the report for people; a closed pipe changes no code."""
    try:
        if as_json:
            from hangdoc.report.document import encode

            emit(encode(diagnosis))
        else:
            from hangdoc.report.terminal import parts

            emit(to_terminal(parts(diagnosis), no_color=no_color))
    except BrokenPipeError:
        return


def to_terminal(parts: Iterable[RenderableType], *, no_color: bool) -> str:
    """Return a report as text for the terminal that standard output is, or for 80 columns."""
    from rich.console import Console

    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    is_plain = no_color or bool(environ.get("NO_COLOR")) or not is_terminal
    width = min(Console().width, WIDEST) if is_terminal else WIDTH
    to = StringIO()
    console = Console(file=to, width=width, color_system=None if is_plain else "standard", force_terminal=not is_plain)
    for part in parts:
        console.print(part)
    # Rich pads lines to the width of a table; nobody wants these blanks in a file.
    return "".join(line.rstrip() + "\n" for line in to.getvalue().splitlines())
