"""Until when a log stayed as it is: told by --now, never guessed, because a file alone does not know."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from hangdoc.errors import HangdocError
from hangdoc.features.clock import seconds_between
from hangdoc.model.reading import Known

_FORMAT = 'now, "2026-11-29 14:05:00" on the log\'s own clock, 14:05:00, or 2026-11-29T14:05:00+00:00'


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
    if re.fullmatch(r"\d\d:\d\d(?::\d\d)?", text.strip()):
        return Moment(f"{text.strip()}:00"[:8], time.time_ns())
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise HangdocError(f"--now {text} is no time", f"write {_FORMAT}") from error
    if when.tzinfo is not None:
        return Moment("", int(when.timestamp()) * 1_000_000_000)
    return Moment(f"{when:%Y-%m-%d %H:%M:%S}", int(when.replace(tzinfo=UTC).timestamp()) * 1_000_000_000)


def ending(last_stamp: str, modified_wall_ns: int, now: Moment | None) -> Ending:
    """Return the moment to judge a log at.

    A time on the log's own clock is measured from its last line, an absolute one from the file's last change, or,
    where there is no file, from the last line read as local time. Without --now nobody knows until when the log
    stayed so: a file's time of change is only told, and its copy is as old as the copying.
    """
    if now is None:
        present_ns = time.time_ns()
        return Ending(present_ns, max(0, present_ns - modified_wall_ns) if modified_wall_ns else 0, known=False)
    if now.stamp:
        clock = now.stamp[-len(last_stamp) :] if 0 < len(last_stamp) <= len(now.stamp) else now.stamp
        silent = seconds_between(last_stamp[-len(clock) :], clock)
        known = isinstance(silent, Known)
        return Ending(now.wall_ns, int(silent.value * 1e9) if isinstance(silent, Known) else 0, known)
    if modified_wall_ns:
        return Ending(now.wall_ns, max(0, now.wall_ns - modified_wall_ns), known=True)
    here = f"{datetime.fromtimestamp(now.wall_ns / 1e9):%Y-%m-%d %H:%M:%S}"  # noqa: DTZ006 - the log's clock is local
    silent = seconds_between(last_stamp, here[-len(last_stamp) :] if last_stamp else here)
    return Ending(now.wall_ns, int(silent.value * 1e9) if isinstance(silent, Known) else 0, isinstance(silent, Known))
