"""Sentences that name every rank, made short: with 64 ranks the one that counts would stand behind 63 others."""

from __future__ import annotations

import re

_WHO = r"[a-z]{1,30}(?: [A-Z]{1,6}\d{1,6}){0,6} \(pid \d{1,10}\)"
_MANY = re.compile(rf"({_WHO}, {_WHO})((?:, {_WHO}){{3,}})")
"""Five or more in a row: fewer are told one by one."""


def shortened(sentence: str) -> str:
    """Return a sentence in which a long row of processes is its first two and a count.

    >>> shortened("a TP0 (pid 1), a TP1 (pid 2), a TP2 (pid 3), a TP3 (pid 4), a TP4 (pid 5) wait")
    'a TP0 (pid 1), a TP1 (pid 2) and 3 more wait'
    """
    return _MANY.sub(lambda found: f"{found[1]} and {found[2].count('(pid ')} more", sentence)
