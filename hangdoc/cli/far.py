"""How far the feeding of prompts is: a bar on a terminal, some lines elsewhere."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hangdoc.cli.failure import say
from hangdoc.relaunch.feed import Fed, Tell

STEPS = 10
"""Lines of progress where there is no terminal for a bar. Arbitrary."""


def bar_on_terminal() -> Progress | None:
    """Return a bar for standard error, None when that is no terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    columns = (
        TextColumn("prompts"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    return Progress(*columns, console=Console(file=sys.stderr))


def in_bar(bar: Progress, count: int) -> Tell:
    """Return what shows the state of count prompts in a bar."""
    task = bar.add_task("prompts", total=count, note="")

    def tell(fed: Fed) -> None:
        bar.update(task, completed=fed.there + fed.answered, note=_note(fed))

    return tell


def in_lines(count: int) -> Tell:
    """Return what says now and then how far count prompts are."""
    told = -1

    def tell(fed: Fed) -> None:
        nonlocal told
        step = (fed.there + fed.answered) * STEPS // count
        if step > told:
            told = step
            say(f"hangdoc: {fed.there + fed.answered} of {count} prompts{_note(fed)}")

    return tell


def _note(fed: Fed) -> str:
    parts = [f"{fed.there} were there" if fed.there else "", f"{len(fed.refused)} refused" if fed.refused else ""]
    said = ", ".join(part for part in parts if part)
    return f" ({said})" if said else ""
