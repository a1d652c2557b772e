"""What each probe can read here, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from hangdoc.model.reading import Known, Reading
from hangdoc.report.lacks import REASON_WORDS
from hangdoc.report.rows import bullet


@dataclass(frozen=True)
class Ability:
    """One probe. reads: where it looks; state: a sentence on what it can read here, or why it cannot."""

    name: str
    title: str
    reads: tuple[str, ...]
    state: Reading[str]


def as_plain(ability: Ability) -> dict[str, Any]:
    """Return the probe as data for JSON."""
    state = ability.state
    known = isinstance(state, Known)
    return {
        "name": ability.name,
        "title": ability.title,
        "reads": list(ability.reads),
        "can_read": known,
        "detail": state.value if isinstance(state, Known) else state.detail,
        "reason": None if isinstance(state, Known) else state.reason,
        "remedy": None if isinstance(state, Known) else state.remedy,
    }


def parts(abilities: Iterable[Ability]) -> Iterator[RenderableType]:
    """Yield the list for people."""
    for ability in abilities:
        yield Text(f"{ability.name}: {ability.title}", "bold")
        state = ability.state
        if isinstance(state, Known):
            yield bullet("+", state.value, "green")
            continue
        detail = f" ({state.detail})" if state.detail else ""
        yield bullet("-", f"{REASON_WORDS[state.reason]}{detail}", "red")
        if state.remedy:
            yield bullet(">", state.remedy)
