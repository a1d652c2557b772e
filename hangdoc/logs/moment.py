"""Until when a log stayed as it is: told by --now, never guessed, because a file alone does not know."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from datetime import time as clock_time

from hangdoc.errors import HangdocError
from hangdoc.features.clock import seconds_between
from hangdoc.model.reading import Missing

_FORMAT = 'now, "2026-11-29 14:05:00" on the log\'s own clock, 14:05:00, or 2026-11-29T14:05:00+00:00'


_LATEST_S = (1 << 63) // 1_000_000_000
"""What nanoseconds in 64 bits reach: the year 2262."""

SKEW_S = 2.0
"""By how much a file may be newer than the moment: file systems round, clocks of file servers differ. Arbitrary."""

LONGEST_ON_A_CLOCK_S = {8: 12 * 3600.0, 14: 183 * 86_400.0}
"""Half of a round of a clock without a date, and of one without a year: what seems longer is earlier."""


@dataclass(frozen=True)
class Moment:
    """A moment. stamp: on the log's own clock, "" when it is an absolute one; wall_ns: in Unix time."""

    stamp: str
    wall_ns: int


@dataclass(frozen=True)
class End:
    """The newest time of a log's end. zone_s: how far its clock is before UTC, None where no line says it.

    is_exact: the last line has that time; else lines without one came later.
    """

    stamp: str
    zone_s: float | None = None
    is_exact: bool = True


@dataclass(frozen=True)
class Ending:
    """The moment a log is judged at. silent_ns: since its last write; known: somebody said until when.

    doubt: why it is not known although a moment was given; "" where there is none.
    """

    wall_ns: int
    silent_ns: int
    known: bool
    doubt: str = ""


def moment(text: str) -> Moment:
    """Return the moment that --now names; HangdocError for what is none.

    >>> moment("2026-11-29 14:05").stamp, moment("2026-11-29T14:05:00Z").wall_ns
    ('2026-11-29 14:05:00', 1795961100000000000)
    """
    if text.strip().lower() == "now":
        return Moment("", time.time_ns())
    try:
        if re.fullmatch(r"\d\d:\d\d(?::\d\d)?", text.strip()):
            return Moment(f"{clock_time.fromisoformat(text.strip()):%H:%M:%S}", time.time_ns())
        when = datetime.fromisoformat(text.strip())
        seconds = int((when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError) as error:
        raise HangdocError(f"--now {text} is no time", f"write {_FORMAT}") from error
    if not 0 <= seconds < _LATEST_S:
        raise HangdocError(f"--now {text} is a time that no log is of", f"write {_FORMAT}")
    stamp = f"{when:%Y-%m-%d %H:%M:%S}" if when.tzinfo is None else ""
    return Moment(stamp, seconds * 1_000_000_000)


def ending(end: End, modified_wall_ns: int, now: Moment | None) -> Ending:
    """Return the moment to judge a log at; HangdocError for one that lies before the log's end.

    A time on the log's own clock is measured from its last line, an absolute one from the file's last change where
    that agrees with the last line in some zone: else it is the time of a copy. Where there is no file, only lines that
    name their zone tell. Without --now nobody knows until when the log stayed so: a file's time of change is only told.
    """
    if now is None:
        present_ns = time.time_ns()
        return Ending(present_ns, max(0, present_ns - modified_wall_ns) if modified_wall_ns else 0, known=False)
    if now.stamp:
        return _on_its_clock(end.stamp, now.stamp, now.wall_ns)
    if modified_wall_ns:
        if modified_wall_ns > now.wall_ns + SKEW_S * 1e9:
            changed = f"{datetime.fromtimestamp(modified_wall_ns / 1e9, UTC):%Y-%m-%dT%H:%M:%S+00:00}"
            raise _too_early(f"the file was changed after that, at {changed} (a copy is as new as its copying)")
        if not _written_then(end, modified_wall_ns):
            return Ending(now.wall_ns, 0, known=False, doubt=_COPIED)
        return Ending(now.wall_ns, max(0, now.wall_ns - modified_wall_ns), known=True)
    if end.zone_s is None:
        return Ending(now.wall_ns, 0, known=False, doubt=_NO_ZONE)
    there = f"{datetime.fromtimestamp(now.wall_ns / 1e9 + end.zone_s, UTC):%Y-%m-%d %H:%M:%S}"
    return _on_its_clock(end.stamp, there, now.wall_ns)


_COPIED = (
    "the file was changed long after the last time in its lines, as a copy is: until when it stayed so is not known"
)
_NO_ZONE = "the lines of the input have no time zone: what time is now on its own clock is not known"

REMEDY = "give --now as the log's own clock shows it: --now 14:05:00"

ZONE_S = 900.0
"""Clocks of zones differ by whole quarters of an hour."""

WEST_S, EAST_S = -12 * 3600.0, 14 * 3600.0
"""The zones there are."""

AFTER_LINE_S, AFTER_BAR_S = 10.0, 120.0
"""How long after the time of its last line a file may have been changed: lines pass through pipes; how long where lines
without a time follow, such as a bar whose beginning is known by its step's. Arbitrary."""


def _written_then(end: End, modified_wall_ns: int) -> bool:
    """Tell whether a file's time of change may be that of its last line, on the clock of some zone."""
    changed = f"{datetime.fromtimestamp(modified_wall_ns / 1e9, UTC):%Y-%m-%d %H:%M:%S}"
    if not end.stamp:
        return True
    try:
        dated = datetime.fromisoformat(f"{changed[: len(changed) - len(end.stamp)]}{end.stamp}")
    except ValueError:
        return False  # there is no such time, or no such day in the year of the change
    after_s = (datetime.fromisoformat(changed) - dated).total_seconds()
    later_s = AFTER_LINE_S if end.is_exact else AFTER_BAR_S
    if end.zone_s is not None:
        return -SKEW_S <= after_s + end.zone_s <= later_s
    off_s = (after_s + AFTER_LINE_S) % ZONE_S - AFTER_LINE_S
    in_zone = len(end.stamp) != len(changed) or -EAST_S - SKEW_S <= after_s <= later_s - WEST_S
    return in_zone and off_s <= later_s


def _on_its_clock(last_stamp: str, now: str, wall_ns: int) -> Ending:
    """Compare the last line's time with a moment on the same clock, as far as both have a date."""
    clock = now[-len(last_stamp) :] if 0 < len(last_stamp) <= len(now) else now
    last = last_stamp[-len(clock) :]
    silent = seconds_between(last, clock)
    if isinstance(silent, Missing):
        return Ending(wall_ns, 0, known=False)
    is_dated = len(clock) not in LONGEST_ON_A_CLOCK_S
    if clock < last if is_dated else silent.value > LONGEST_ON_A_CLOCK_S[len(clock)]:
        raise _too_early(f"its last line is of {last_stamp}")
    return Ending(wall_ns, int(silent.value * 1e9), known=True)


def _too_early(why: str) -> HangdocError:
    return HangdocError(f"--now is before the log's end: {why}", f"give a later moment: {_FORMAT}")
