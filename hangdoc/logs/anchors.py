"""Plain texts, one of which is in every line that a pattern finds: to look for them costs a tenth of the pattern."""

from __future__ import annotations

import re
from functools import lru_cache

from hangdoc.model.engine import Engine

SHORTEST = 3
"""Characters of an anchor. Arbitrary: two letters stand in every line."""

_SIGN = re.compile(
    r"\\[AbBdDsSwWZ]|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?[:!=]|\(\?P<\w+>|[()|^$.]|[*+?](?:[?+])?|\{\d*,?\d*\}\??|.",
    re.DOTALL,
)
_BREAKS = re.compile(r"\\[AbBdDsSwWZ]|\[.*|[()^$.].*|\\n", re.DOTALL)


def anchors_of(pattern: str) -> tuple[str, ...] | None:
    r"""Return texts of which every match of a pattern contains one; None when it has a branch without any.

    Rule: of each branch at the outermost level the longest run of literal characters outside groups.

    >>> anchors_of(r"is using nccl==(?P<version>[\d.]+)"), anchors_of(r"^Killed$|a gone?"), anchors_of(r"\w+")
    (('is using nccl==',), ('Killed', 'a gon'), None)
    """
    branches: list[list[str]] = [[""]]
    depth = 0
    for sign in _SIGN.findall(pattern):
        depth += sign.startswith("(") - (sign == ")")
        runs = branches[-1]
        if sign == "|" and depth == 0:
            branches.append([""])
        elif depth or sign == ")" or _BREAKS.fullmatch(sign):
            runs.append("")
        elif sign[0] in "*?{":
            runs[-1] = runs[-1][:-1]  # the character before it may be absent
            runs.append("")
        elif sign[0] == "+":
            runs.append("")
        else:
            runs[-1] += sign.removeprefix("\\")
    longest = [max(runs, key=len) for runs in branches]
    return tuple(longest) if all(len(text) >= SHORTEST for text in longest) else None


@lru_cache
def of_engine(engine: Engine) -> tuple[tuple[str, ...], re.Pattern[str]]:
    """Return the anchors of an engine's lines, and one pattern for the lines that have none."""
    found: dict[str, None] = {}
    rest = []
    for line in engine.log_lines:
        anchors = anchors_of(line.pattern.pattern)
        if anchors is None:
            rest.append(re.sub(r"\(\?P<\w+>", "(?:", line.pattern.pattern).replace("^", ""))
        else:
            found |= dict.fromkeys(anchors)
    least = tuple(text for text in found if not any(other in text and other != text for other in found))
    return least, re.compile("|".join(rest) or r"(?!)")


def may_be_known(line: str, engine: Engine) -> bool:
    """Tell whether a line may be one that an engine's table knows: cheap, and wrong in one direction only."""
    anchors, rest = of_engine(engine)
    return any(anchor in line for anchor in anchors) or rest.search(line) is not None
