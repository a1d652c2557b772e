"""`--now`: until when a log stayed as it is; a moment that cannot be meant is refused with one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hangdoc.errors import HangdocError
from hangdoc.logs.moment import End, ending, moment
from hangdoc.logs.read import Wishes, read
from hangdoc.trace.tokens import Tokens
from hangdoc.trace.wording import sentence

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
        ending(End(last), 0, moment(now))


@pytest.mark.parametrize(
    ("last", "now", "silent_s"),
    [("23:59:00", "00:01", 120), ("12-31 23:59:00", "2027-01-01 00:00:00", 60), ("12:00:00", "2026-11-29 12:00", 0)],
)
def test_a_clock_may_pass_midnight(last: str, now: str, silent_s: int) -> None:
    """A clock without a date, or without a year, goes round: what is a little earlier on it is later."""
    assert ending(End(last), 0, moment(now)).silent_ns == silent_s * SECOND_NS


def test_before_the_files_last_change(tmp_path: Path) -> None:
    """A file that was changed after the moment was not yet so at it; the reason is told."""
    log = tmp_path / "server.log"
    log.write_text("[2026-11-29 12:00:00 TP0] Load weight begin. avail mem=70 GB\n")
    os.utime(log, (1_800_000_000, 1_800_000_000))
    with pytest.raises(HangdocError, match="was changed after that, at 2027-01-15T08:00:00"):
        read([log], Wishes(now=moment("2027-01-15T07:59:00Z")))
    assert read([log], Wishes(now=moment("2027-01-15T08:01:00Z"))).snapshots


NOW = moment("2026-11-29T15:00:00Z")
AT_LAST_LINE_NS = moment("2026-11-29T14:50:00Z").wall_ns


def test_input_without_a_zone() -> None:
    """Of standard input nobody knows which time it is on its own clock now, wherever it is read; with a zone it is."""
    unknown = ending(End("2026-11-29 14:50:00"), 0, NOW)
    assert not unknown.known
    assert "zone" in unknown.doubt
    assert sentence(Tokens(), unknown.doubt) == unknown.doubt
    assert ending(End("2026-11-29 15:50:00", zone_s=3600.0), 0, NOW).silent_ns == 600 * SECOND_NS


@pytest.mark.parametrize(
    ("last", "known"),
    [
        (End("2026-11-29 14:50:00"), True),
        (End("2026-11-29 20:20:00"), True),
        (End("2026-11-29 14:47:00"), False),
        (End("2026-11-27 14:50:00"), False),
        (End("14:46:10"), False),
        (End("15:50:00"), True),
        (End("11-29 15:49:00", is_exact=False), True),
        (End("2026-11-29 15:50:00", zone_s=3600.0), True),
        (End("2026-11-29 15:50:00", zone_s=0.0), False),
    ],
)
def test_a_copy_is_as_new_as_its_copying(last: End, known: bool) -> None:
    """A file's time of change counts where it is that of its last line in some zone; otherwise it is the copy's."""
    found = ending(last, AT_LAST_LINE_NS, NOW)
    assert found.known is known
    assert bool(found.doubt) is not known
    assert found.silent_ns == (600 * SECOND_NS if known else 0)
    assert sentence(Tokens(), found.doubt) == found.doubt


BEGINS = "[2026-11-29 14:00:00 TP0] Load weight begin. avail mem=70 GB\n"
BAR = "Loading safetensors checkpoint shards:  50% Completed | {done}/30 [{at}<10:00, 60.00s/it]\r"


@pytest.mark.parametrize("first", ["", BAR.format(done=0, at="00:00")])
def test_a_bar_proves_when_it_was_drawn(first: str, tmp_path: Path) -> None:
    """A bar has no time, but counts from its step's begin: silence is measured from its last drawing."""
    log = tmp_path / "server.log"
    log.write_text(BEGINS + first + BAR.format(done=15, at="15:00"))
    found = read([log], Wishes(now=moment("2026-11-29 14:15:20")))
    [tail] = [one.reading.value for one in found.snapshots[0].samples if one.probe == "log"]
    assert tail.last_stamp == "2026-11-29 14:15:00"
    assert found.snapshots[0].wall_ns - tail.modified_wall_ns == 20 * SECOND_NS
