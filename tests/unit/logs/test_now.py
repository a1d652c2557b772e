"""`--now`: until when a log stayed as it is; a moment that cannot be meant is refused with one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hangdoc.errors import HangdocError
from hangdoc.logs.moment import ending, moment
from hangdoc.logs.read import Wishes, read

SECOND_NS = 10**9


@pytest.mark.parametrize(
    "text",
    ["25:99", "24:00", "12:60", "12:00:61", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00",
     "2300-01-01 00:00:00", "1969-12-31T00:00:00Z", "yesterday", ""],
)  # fmt: skip
def test_what_is_no_time(text: str) -> None:
    """A time that no clock shows, or that no log can be of, is refused and never ignored."""
    with pytest.raises(HangdocError, match="--now") as error:
        moment(text)
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("last", "now"),
    [
        ("2026-11-29 12:00:00", "2026-11-29 11:59:59"),
        ("2026-11-29 12:00:00", "11:59"),
        ("12:00:00", "11:59:00"),
        ("12:00:00", "2026-11-29 11:59:00"),
        ("11-29 12:00:00", "2026-11-29 11:00:00"),
    ],
)
def test_before_the_last_line(last: str, now: str) -> None:
    """A moment before the log's last line is refused: no time went by, so nothing could be told from it."""
    with pytest.raises(HangdocError, match="before the log's end"):
        ending(last, 0, moment(now))


@pytest.mark.parametrize(
    ("last", "now", "silent_s"),
    [("23:59:00", "00:01", 120), ("12-31 23:59:00", "2027-01-01 00:00:00", 60), ("12:00:00", "2026-11-29 12:00", 0)],
)
def test_a_clock_may_pass_midnight(last: str, now: str, silent_s: int) -> None:
    """A clock without a date, or without a year, goes round: what is a little earlier on it is later."""
    assert ending(last, 0, moment(now)).silent_ns == silent_s * SECOND_NS


def test_before_the_files_last_change(tmp_path: Path) -> None:
    """A file that was changed after the moment was not yet so at it; the reason is told."""
    log = tmp_path / "server.log"
    log.write_text("[2026-11-29 12:00:00 TP0] Load weight begin. avail mem=70 GB\n")
    os.utime(log, (1_800_000_000, 1_800_000_000))
    with pytest.raises(HangdocError, match="was changed after that, at 2027-01-15T08:00:00"):
        read([log], Wishes(now=moment("2027-01-15T07:59:00Z")))
    assert read([log], Wishes(now=moment("2027-01-15T08:01:00Z"))).snapshots
