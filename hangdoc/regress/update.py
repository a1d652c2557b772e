"""--update: expectations that fit what is said now; the change is told before it is written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hangdoc.errors import HangdocError
from hangdoc.regress.judge import Result
from hangdoc.regress.wanted import corrected, rewritten, text_of, wanted
from hangdoc.report.expectation import read_expectation
from hangdoc.report.fields import RULED_OUT


@dataclass(frozen=True)
class Change:
    """A new text for an expectation. words: what changes in it, one line each."""

    name: str
    path: Path
    text: str
    words: tuple[str, ...]


def changes(results: Sequence[Result]) -> list[Change]:
    """Return a change for each trace that differs or that has no expectation yet."""
    return [change for one in results if (change := _change(one)) is not None]


def _change(result: Result) -> Change | None:
    case = result.case
    if result.said is None:
        return None
    if not case.has_expectation:
        fields = text_of(wanted(result.said))
        return Change(case.name, case.expectation, fields, (f"new: expects {result.in_words}",))
    if result.state != "differs":
        return None
    fields_now = corrected(read_expectation(case.expectation), result.said)
    text = rewritten(case.expectation.read_text(encoding="utf-8"), fields_now)
    return Change(case.name, case.expectation, text, tuple(map(_as_change, result.lines)))


def _as_change(difference: str) -> str:
    """Say what becomes of an expectation that differs.

    >>> _as_change('verdict: expected "healthy", found "blocked"')
    'verdict: no longer "healthy" but "blocked"'
    >>> _as_change('ruled_out: there is no hypothesis "HD999"')
    'ruled_out: there is no hypothesis "HD999", it is taken out'
    """
    if difference.startswith(f"{RULED_OUT}: "):
        return f"{difference}, it is taken out"
    return difference.replace(": expected ", ": no longer ").replace(", found ", " but ")


def write(change: Change) -> None:
    """Write an expectation, whole or not at all."""
    beside = change.path.with_name(f".{change.path.name}.{os.getpid()}.new")
    try:
        beside.write_text(change.text, encoding="utf-8")
        beside.replace(change.path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise HangdocError(
            f"{change.path} cannot be written: {error.strerror}", "see its directory's rights"
        ) from error
