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
class Ending:
    """The moment a log is judged at. silent_ns: since its last write; known: somebody said until when."""

    wall_ns: int
    silent_ns: int
    known: bool


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


def ending(last_stamp: str, modified_wall_ns: int, now: Moment | None) -> Ending:
    """Return the moment to judge a log at; HangdocError for one that lies before the log's end.

    A time on the log's own clock is measured from its last line, an absolute one from the file's last change, or,
    where there is no file, from the last line read as local time. Without --now nobody knows until when the log
    stayed so: a file's time of change is only told, and its copy is as old as the copying.
    """
    if now is None:
        present_ns = time.time_ns()
        return Ending(present_ns, max(0, present_ns - modified_wall_ns) if modified_wall_ns else 0, known=False)
    if now.stamp:
        return _on_its_clock(last_stamp, now.stamp, now.wall_ns)
    if modified_wall_ns:
        if modified_wall_ns > now.wall_ns + SKEW_S * 1e9:
            changed = f"{datetime.fromtimestamp(modified_wall_ns / 1e9, UTC):%Y-%m-%dT%H:%M:%S+00:00}"
            raise _too_early(f"the file was changed after that, at {changed} (a copy is as new as its copying)")
        return Ending(now.wall_ns, max(0, now.wall_ns - modified_wall_ns), known=True)
    here = f"{datetime.fromtimestamp(now.wall_ns / 1e9):%Y-%m-%d %H:%M:%S}"  # noqa: DTZ006 - the log's clock is local
    return _on_its_clock(last_stamp, here, now.wall_ns)


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
