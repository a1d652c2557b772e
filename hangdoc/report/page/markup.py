"""Markup that cannot be broken out of: text becomes markup only by being escaped, and only here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from hangdoc.report.plain import plain
from hangdoc.report.short import shortened


class Html(str):
    """Text that is markup already. Made by this module alone; whatever else is a str is escaped where it is put in.

    What str's own operations make of it is a str again: a mistake shows as visible tags, never as an injection.
    """

    __slots__ = ()


Child: TypeAlias = Html | str | None
"""What may stand in an element; None is left out."""

Attribute: TypeAlias = str | int | float | bool | None
"""A value of an attribute: True is the bare name, False and None leave it out."""

_VOID = frozenset({"meta", "link", "br", "hr", "input", "wbr"})


def text(value: str) -> Html:
    """Return text of the target as markup: on one line, without control or direction characters, escaped."""
    return Html(escape(plain(value), quote=True))


def element(name: str, /, *children: Child, **attributes: Attribute) -> Html:
    """Return an element. Names of attributes: class_ is class, and stroke_width is stroke-width.

    >>> element("p", "1 < 2", element("br"), class_="sum", title='"', hidden=False)
    '<p class="sum" title="&quot;">1 &lt; 2<br></p>'
    """
    opened = f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    if name in _VOID:
        return Html(opened)
    return Html(f"{opened}{together(*children)}</{name}>")


def together(*children: Child) -> Html:
    """Return several children as one piece of markup."""
    return Html("".join(child if isinstance(child, Html) else text(child) for child in children if child is not None))


def each(children: Iterable[Child]) -> Html:
    """Return the children of an iterable as one piece of markup."""
    return together(*children)


def verbatim(own: str) -> Html:
    """Return text that hangdoc itself ships (its style sheet, its script) as it is; never anything of a target."""
    return Html(own)


def code(value: str) -> Html:
    """Return a name or a place of the code; long ones may break after a slash or a dot."""
    return element("code", value)


_PLACE = re.compile(r"\([^()]{1,200}:\d{1,7}\)")
"""A place of the code in a sentence: "(models/deepseek_v2.py:3059)"."""


def sentence(value: str) -> Html:
    """Return a sentence, a long row of ranks made short, in which places of the code stand back behind the words."""
    value = shortened(value)
    parts: list[Child] = []
    end = 0
    for found in _PLACE.finditer(value):
        parts += [value[end : found.start()], element("span", found[0], class_="place")]
        end = found.end()
    return together(*parts, value[end:])


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return f' {name}="{text(shown)}"'
