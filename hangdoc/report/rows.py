"""Rows of a text report: each text from outside passes here and leaves its control sequences behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hangdoc.report.plain import plain


def harmless(line: str, style: str = "") -> Text:
    """Return a line that can be printed: a Text is never read as markup, and plain() takes control sequences out."""
    return Text(plain(line), style)


def bullet(sign: str, line: str, style: str = "") -> RenderableType:
    """Return a line behind a sign; what does not fit goes on below the text, not below the sign."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=2, justify="right", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(sign, style), harmless(line))
    return grid


def section(title: str, rows: Sequence[RenderableType]) -> Iterator[RenderableType]:
    """Yield a titled block, or nothing when it has no rows."""
    if rows:
        yield Text()
        yield harmless(title, "bold underline")
        yield from rows
