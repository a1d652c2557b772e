"""Blocks that several sections are made of: a section, a table that can be sorted, a list, something folded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hangdoc.report.page.markup import Child, Html, each, element


@dataclass(frozen=True)
class Cell:
    """One cell of a table. order: what it is sorted by where that is not its text; number: stands at the right."""

    shown: Child
    order: float | None = None
    number: bool = False


def section(name: str, title: str, *children: Child) -> Html:
    """Return a section with its heading; name: what a link leads to."""
    head = element("h2", title, id=f"{name}-title")
    return element("section", head, *children, id=name, aria_labelledby=f"{name}-title")


def folded(summary: Child, *children: Child, is_open: bool = False, class_: str | None = None) -> Html:
    """Return something that opens by a click or the space bar."""
    return element("details", element("summary", summary), *children, open=is_open, class_=class_)


def listed(items: Iterable[Child], class_: str | None = None) -> Html:
    """Return a list."""
    return element("ul", each(element("li", item) for item in items), class_=class_)


def wide(label: str, *children: Child) -> Html:
    """Return something wider than a telephone: it scrolls by itself, with the arrow keys too."""
    return element("div", *children, class_="wide", role="region", aria_label=label, tabindex=0)


def table(caption: str, titles: Sequence[str], rows: Iterable[Sequence[Cell | str]], class_: str | None = None) -> Html:
    """Return a table whose columns can be sorted, in a region that scrolls; the first cell of a row is its head."""
    lines = list(rows)
    numbers = [all(_is_number(row[n]) for row in lines) for n in range(len(titles))]
    names = zip(titles, numbers, strict=True)
    head = element(
        "tr", each(element("th", t, scope="col", class_="number" if n and lines else None) for t, n in names)
    )
    body = each(element("tr", each(_cell(cell, first=n == 0) for n, cell in enumerate(row))) for row in lines)
    inner = (element("caption", caption), element("thead", head), element("tbody", body))
    return wide(caption, element("table", *inner, class_=f"sortable {class_ or ''}".strip()))


def _is_number(cell: Cell | str) -> bool:
    return isinstance(cell, Cell) and cell.number


def _cell(cell: Cell | str, *, first: bool) -> Html:
    given = cell if isinstance(cell, Cell) else Cell(cell)
    name = "th" if first else "td"
    return element(
        name,
        given.shown,
        scope="row" if first else None,
        class_="number" if given.number else None,
        data_order=given.order,
    )


def facts(pairs: Iterable[tuple[str, Child]], class_: str | None = None) -> Html:
    """Return names with their values."""
    rows = (element("div", element("dt", name), element("dd", value)) for name, value in pairs)
    return element("dl", each(rows), class_=class_)


def note(*children: Child) -> Html:
    """Return a remark below or above something."""
    return element("p", *children, class_="note")


def many(count: int, one: str, more: str | None = None) -> str:
    """Return a count with its noun.

    >>> many(1, "thread"), many(2, "process", "processes")
    ('1 thread', '2 processes')
    """
    return f"{count:,} {one if count == 1 else more or one + 's'}"
