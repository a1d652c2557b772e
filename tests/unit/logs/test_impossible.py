"""Lines that no clock and no rank ever wrote: they end in a diagnosis, never in a fault of hangdoc's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangdoc import discovery
from hangdoc.diagnosis import diagnose
from hangdoc.errors import HangdocError
from hangdoc.features.clock import later
from hangdoc.logs.evidence import read_evidence
from hangdoc.logs.moment import End, ending, moment
from hangdoc.logs.read import Wishes, read
from hangdoc.logs.sources import sources

LONG = "9" * 20
BARRIER = (
    f"Waiting in store based barrier to initialize process group for rank: {LONG}, key: store_based_barrier_key:1 "
    "(world_size=4, worker_count=3, timeout=0:30:00)\n"
)
RAS = (
    "NCCL version 2.28.9+cuda12.9 compiled with CUDA 12.9\n"
    f"Rank {LONG} has launched up to operation 4 -- GPU 0 managed by process 12 on node x\n"
)
GLOO = f"[Gloo] Rank {LONG} is connected to 1 peer ranks. Expected number of connected peer ranks is : {LONG}\n"


@pytest.mark.parametrize("text", [BARRIER, RAS, GLOO, BARRIER.replace(LONG, "\N{ARABIC-INDIC DIGIT THREE}")])
def test_a_number_that_none_is_makes_a_line_one_that_is_not_known(tmp_path: Path, text: str) -> None:
    """A rank of twenty digits, or of an Arabic one, is none: the log is diagnosed all the same."""
    log = tmp_path / "server.log"
    log.write_text(f"[2026-01-02 03:04:05 TP0] Load weight begin.\n{text}")
    assert diagnose(read([log], Wishes(discovery.engine("sglang"))), "log").phase == "weight-load"


@pytest.mark.parametrize("stamp", ["02-29 10:00:00", "2026-13-45 99:99:99", "99:99:99"])
def test_a_time_that_was_never_is_not_that_of_the_last_change(stamp: str) -> None:
    """No file was changed on 29 February 2026: until when such a log stayed as it is is not known."""
    now = moment("2026-11-29T14:05:00Z")
    assert not ending(End(stamp), now.wall_ns - 10**9, now).known


def test_no_time_comes_after_the_last_one() -> None:
    """A bar that counts beyond the year 9999 has no time, as a line without one."""
    assert later("9999-12-31 23:59:59", 3600.0) == ""


@pytest.mark.parametrize("number", ["Infinity", "1e999", "9" * 400])
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("flight", '{"pg_status": {"0": {"last_enqueued_collective": N, "last_completed_collective": 1}}}'),
        (
            "ras",
            '{"nccl_version": "2.28.9", "communicators": [{"ranks": [{"rank": N, "collective_counts": {"X": 1}}]}]}',
        ),
    ],
)
def test_a_count_that_none_is_is_refused(tmp_path: Path, kind: str, text: str, number: str) -> None:
    """A count that fits into no counter is a fault of the file, said in one line."""
    file = tmp_path / "evidence.json"
    file.write_text(text.replace("N", number, 1))
    with pytest.raises(HangdocError, match=r"evidence\.json"):
        read_evidence(sources([file])[0], kind, "tp")
