"""Plain texts, one of which is in every line that a pattern finds: to look for them costs a tenth of the pattern."""

from __future__ import annotations

import re
from collections.abc import Sequence
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

    Rule: of each branch at the outermost level the longest run of literal characters outside groups; where that is too
    short, the same of the first of its groups that is always there.

    >>> anchors_of(r"is using nccl==(?P<version>[\d.]+)"), anchors_of(r"^Killed$|a gone?"), anchors_of(r"\w+")
    (('is using nccl==',), ('Killed', 'a gon'), None)
    >>> anchors_of(r"(?:exited with|ended by) (?P<code>\d+)$"), anchors_of(r"(?:one|two)? \d")
    (('exited with', 'ended by'), None)
    """
    return _anchors(_SIGN.findall(pattern))


def _anchors(signs: Sequence[str]) -> tuple[str, ...] | None:
    found: list[str] = []
    for branch in _branches(signs):
        runs, groups = _parts(branch)
        longest = max(runs, key=len)
        if len(longest) >= SHORTEST:
            found.append(longest)
        elif (inner := next((texts for group in groups if (texts := _anchors(group)) is not None), None)) is not None:
            found += inner
        else:
            return None
    return tuple(found)


def _branches(signs: Sequence[str]) -> list[list[str]]:
    branches: list[list[str]] = [[]]
    depth = 0
    for sign in signs:
        depth += sign.startswith("(") - (sign == ")")
        if sign == "|" and depth == 0:
            branches.append([])
        else:
            branches[-1].append(sign)
    return branches


def _parts(branch: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Return the runs of literal characters of a branch, and what is in its groups that are always there."""
    runs, groups = [""], []
    depth = begin = 0
    for at, sign in enumerate(branch):
        depth += sign.startswith("(") - (sign == ")")
        if depth == 1 and sign.startswith("("):
            begin = at
        if (
            sign == ")"
            and depth == 0
            and not branch[begin].endswith(("!", "="))
            and not "".join(branch[at + 1 : at + 2]).startswith(("*", "?", "{"))
        ):
            groups.append(list(branch[begin + 1 : at]))
        if depth or sign == ")" or _BREAKS.fullmatch(sign):
            runs.append("")
        elif sign[0] in "*?{":
            runs[-1] = runs[-1][:-1]  # the character before it may be absent
            runs.append("")
        elif sign[0] == "+":
            runs.append("")
        else:
            runs[-1] += sign.removeprefix("\\")
    return runs, groups


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
