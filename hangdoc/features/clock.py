"""Times as logs print them, without a zone and sometimes without a date: how much lies between two of them."""

from __future__ import annotations

from datetime import datetime, timedelta

from hangdoc.model.reading import Known, Missing, Reading

_LEAP_YEAR = 2000
"""A year that has every day, for times that are printed without one."""

NO_TIME = Missing("log", "not-in-input", "its lines have no time", "log with time stamps")


def seconds_between(begin: str, end: str) -> Reading[float]:
    """Return the seconds from one time of a log to a later one; Missing where one of them has none, or another form.

    A clock without a date passes midnight, one without a year New Year: an end that seems earlier is one round later.

    >>> seconds_between("23:59:58", "00:00:01")
    Known(value=3.0)
    >>> seconds_between("2026-01-02 03:04:05", "2026-01-02 03:04:00")
    Known(value=0.0)
    """
    first, last = _moment(begin), _moment(end)
    if first is None or last is None or len(begin) != len(end):
        return NO_TIME
    seconds = (last - first).total_seconds()
    if seconds < 0:
        seconds += _round_s(begin)
    return Known(max(0.0, seconds))


def later(stamp: str, seconds: float) -> str:
    """Return a time of a log some seconds later, in the same writing; "" for what is no time, or beyond the last one.

    >>> later("23:59:58", 4), later("12-31 23:59:59", 1), later("", 1)
    ('00:00:02', '01-01 00:00:00', '')
    """
    begin = _moment(stamp)
    try:
        return "" if begin is None else f"{begin + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}"[-len(stamp) :]
    except OverflowError:
        return ""


def _moment(stamp: str) -> datetime | None:
    whole = {8: f"{_LEAP_YEAR}-01-01 {stamp}", 14: f"{_LEAP_YEAR}-{stamp}", 19: stamp}.get(len(stamp), "")
    try:
        return datetime.fromisoformat(whole)
    except ValueError:
        return None


def _round_s(stamp: str) -> float:
    """Return how long the clock goes until it shows the same again; 0 for one that never does."""
    rounds = {8: timedelta(days=1), 14: timedelta(days=366)}
    return rounds.get(len(stamp), timedelta()).total_seconds()
