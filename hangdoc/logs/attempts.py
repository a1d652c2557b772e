"""Which files of a directory are of the last attempt: torchrun starts failed workers again and keeps their old logs."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from hangdoc.logs.sources import Source

_ATTEMPT = re.compile(r"attempt_(?P<number>\d{1,6})")


def of_last_attempt(found: Sequence[Source], named: Collection[Path]) -> list[Source]:
    """Return the files without those of attempts that a later one followed; named: files given by name, which stay.

    torchrun's layout is <run>/attempt_<n>/<local rank>/stderr.log, with n counted upwards.
    """
    last: dict[Path, int] = {}
    for one in found:
        if (place := _attempt(one.path)) is not None:
            last[place[0]] = max(place[1], last.get(place[0], 0))
    return [
        one for one in found if one.path in named or (place := _attempt(one.path)) is None or place[1] == last[place[0]]
    ]


def _attempt(path: Path) -> tuple[Path, int] | None:
    """Return the run that a file is of, and the number of its attempt."""
    for parent in path.parents:
        if (match := _ATTEMPT.fullmatch(parent.name)) is not None:
            return parent.parent, int(match["number"])
    return None
