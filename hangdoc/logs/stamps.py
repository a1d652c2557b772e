"""The times that stand in log lines, in one writing: "2026-01-02 03:04:05", without year or date where none stands."""

from __future__ import annotations

import re

STAMP = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d"
"""A whole date and time."""

_FIRST = re.compile(
    rf"(?P<whole>{STAMP})"
    r"|(?:^|\s)(?:INFO|WARNING|ERROR|DEBUG|CRITICAL) (?P<day>\d\d-\d\d \d\d:\d\d:\d\d)"
    r"|^\[?[IWEF](?P<month>\d\d)(?P<date>\d\d) (?P<glog>\d\d:\d\d:\d\d)"
    r"|\[(?P<clock>\d\d:\d\d:\d\d)[\] ]"
)

_LOOKED_AT = 160
"""Characters of a line in which its time stands: after the names of a container and of a logger. Arbitrary."""


def stamp_of(line: str) -> str:
    """Return the first time in a line; "" when it has none.

    >>> stamp_of("[12:00:01 TP0] x"), stamp_of("INFO 06-19 23:05:01 [loader.py:447] x"), stamp_of("I1211 08:44:30.3 x")
    ('12:00:01', '06-19 23:05:01', '12-11 08:44:30')
    """
    match = _FIRST.search(line[:_LOOKED_AT])
    if match is None:
        return ""
    if match["glog"] is not None:
        return f"{match['month']}-{match['date']} {match['glog']}"
    return normal(match["whole"] or match["day"] or match["clock"] or "")


_ZONE = re.compile(rf"{STAMP}(?:[.,]\d{{1,9}})?(?:(?P<utc>Z)|(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>\d\d))(?!\d)")


def zone_of(line: str) -> float | None:
    """Return by how many seconds the clock of a line's first time is before UTC; None where the line does not say.

    >>> zone_of("2026-01-02T03:04:05.678Z stdout F x"), zone_of("2026-01-02T03:04:05+01:00 x"), zone_of("[03:04:05] x")
    (0.0, 3600.0, None)
    """
    match = _ZONE.search(line[:_LOOKED_AT])
    if match is None or normal(match[0]) != stamp_of(line):
        return None
    if match["utc"]:
        return 0.0
    ahead = int(match["hours"]) * 3600.0 + int(match["minutes"]) * 60.0
    return -ahead if match["sign"] == "-" else ahead


def normal(stamp: object) -> str:
    """Return a time in the common writing, without fractions and zone; "" for what is none.

    >>> normal("2026-01-02T03:04:05.678Z")
    '2026-01-02 03:04:05'
    """
    if not isinstance(stamp, str) or not re.match(r"(?:(?:\d{4}-)?\d\d-\d\d[ T])?\d\d:\d\d:\d\d", stamp):
        return ""
    whole = stamp[:19] if stamp[4:5] == "-" else stamp
    return whole.replace("T", " ")
