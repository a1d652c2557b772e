"""Plain texts, one of which is in every line that a pattern finds: to look for them costs a tenth of the pattern."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import compress

from hangdoc.model.engine import Engine, LogLine

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
    >>> anchors_of(r"(?:exited with|ended by) (?P<code>\d+)$"), anchors_of(r"(?:one|two)? \d"), anchors_of("(?i:one)")
    (('exited with', 'ended by'), None, None)
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
        if sign == ")" and depth == 0 and _is_always_there(branch[begin : at + 2]):
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


def _is_always_there(group: Sequence[str]) -> bool:
    """Tell whether what is in a group is in every match: no look-around, no flags, and not left out."""
    after = group[-1] if group[-1] != ")" else ""
    return not group[0].endswith(("!", "=")) and group[1] != "?" and not after.startswith(("*", "?", "{"))


@lru_cache
def of_engine(engine: Engine) -> tuple[tuple[LogLine, tuple[str, ...]], ...]:
    """Return each line of an engine's table with its anchors; () for one that has none."""
    return tuple((line, anchors_of(line.pattern.pattern) or ()) for line in engine.log_lines)


@lru_cache
def _least(engine: Engine) -> tuple[str, ...]:
    found = dict.fromkeys(text for _, anchors in of_engine(engine) for text in anchors)
    return tuple(text for text in found if not any(other in text and other != text for other in found))


@lru_cache
def _rest(engine: Engine) -> re.Pattern[str] | None:
    """Return one pattern for the lines that have no anchors; None where each has some."""
    loose = [line.pattern.pattern for line, anchors in of_engine(engine) if not anchors]
    plain = [re.sub(r"\(\?P<\w+>", "(?:", pattern).replace("^", "") for pattern in loose]
    return re.compile("|".join(plain)) if plain else None


@lru_cache
def _one_by_one(engine: Engine) -> tuple[tuple[LogLine, ...], tuple[str, ...]]:
    """Return lines and an anchor of each, a line once for each of its anchors; "" for one that has none."""
    rows = [(line, anchor) for line, anchors in of_engine(engine) for anchor in anchors or ("",)]
    return tuple(line for line, _ in rows), tuple(anchor for _, anchor in rows)


def may_be_known(line: str, engine: Engine) -> bool:
    """Tell whether a line may be one that an engine's table knows: cheap, and wrong in one direction only."""
    if any(map(line.__contains__, _least(engine))):  # no loop of Python's: this is asked of every line
        return True
    rest = _rest(engine)
    return rest is not None and rest.search(line) is not None


def candidates(text: str, engine: Engine) -> Iterator[LogLine]:
    """Yield the lines of an engine's table that a text may be, in the table's order: a fraction of all patterns."""
    lines, anchors = _one_by_one(engine)
    before: LogLine | None = None
    for line in compress(lines, map(text.__contains__, anchors)):
        if line is not before:
            yield line
        before = line
