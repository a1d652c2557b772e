"""Which files belong together: rotated pieces of one log in their order, and whose rank a log of its own is."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hangdoc.logs.sources import Source

_ENDINGS = re.compile(r"\.(?:gz|zst|bz2|xz)$", re.IGNORECASE)
_PIECE = re.compile(r"^(?P<name>.+?)[.-](?P<number>\d{1,5}|\d{4}-?\d\d-?\d\d(?:[T_-]?\d{2,6})?)$")
_RANK = re.compile(
    r"(?:^|[._-])(?P<axis>global_rank|local_rank|rank|worker|tp|dp|pp)[._-]?(?P<number>\d{1,5})(?=[._-]|$)"
)


def together(found: Iterable[Source]) -> list[list[Source]]:
    """Return the pieces of each log, oldest first.

    server.log.2.gz comes before server.log.1, that before server.log; dates count upwards. A name that ends in a
    number is only a piece where the log itself is there, too: rank.0 and rank.1 are two logs.
    """
    every = list(found)
    names = {_plain(one) for one in every}
    groups: dict[str, list[tuple[tuple[int, str], Source]]] = {}
    for one in every:
        match = _PIECE.match(_plain(one))
        if match is not None and match["name"] in names:
            number = match["number"]
            order = (0, number) if len(number) >= 8 else (0, f"{99_999 - int(number):05d}")
            groups.setdefault(match["name"], []).append((order, one))
        else:
            groups.setdefault(_plain(one), []).append(((1, ""), one))
    return [[one for _, one in sorted(pieces, key=lambda piece: piece[0])] for pieces in groups.values()]


def _plain(source: Source) -> str:
    return _ENDINGS.sub("", str(source.path))


def rank_in_name(source: Source, axis: str) -> dict[str, int]:
    """Return the rank that a file's name tells: rank3.log, tp1.out, and torchrun's attempt_0/3/stderr.log.

    >>> from pathlib import Path
    >>> rank_in_name(Source(Path("logs/rank3.log"), 1, 0), "tp"), rank_in_name(Source(Path("a/server.log"), 1, 0), "tp")
    ({'tp': 3}, {})
    """
    match = _RANK.search(_ENDINGS.sub("", source.path.name).lower())
    if match is not None:
        return {axis if match["axis"] not in {"tp", "dp", "pp"} else match["axis"]: int(match["number"])}
    parent = source.path.parent
    if source.path.stem in {"stdout", "stderr", "error"} and parent.name.isdigit():
        return {axis: int(parent.name)}
    return {}
