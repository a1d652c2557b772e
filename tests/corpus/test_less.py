"""A reading that is taken away from a log's trace makes nothing more certain either."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangdoc.diagnosis import diagnose
from hangdoc.logs.moment import moment
from hangdoc.logs.read import Wishes, read
from hangdoc.trace.records import Trace
from tests.properties.test_missing_readings import check, groups_of, without

LAUNCHES = sorted(Path(__file__).with_name("launches").glob("*.log"))
WATCHDOG = """[2026-11-29 12:07:00 TP1] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)
Process 309: sglang::scheduler_TP1
Thread 309 (active): "MainThread"
    forward (models/deepseek_v2.py:78)
    event_loop_normal (managers/scheduler.py:957)
[2026-11-29 12:07:05] SIGQUIT received. signum=None, frame=None. It usually means one child failed.
"""


def traces(directory: Path) -> list[Trace]:
    text = directory / "report.txt"
    text.write_text(WATCHDOG)
    return [read([log], Wishes(now=moment("2026-11-30 12:00:00"))) for log in (*LAUNCHES, text)]


@pytest.mark.parametrize("number", range(len(LAUNCHES) + 1))
def test_one_reading_less(number: int, tmp_path: Path) -> None:
    """Without any one reading of a log's trace no grade rises; the verdict is the same or undetermined."""
    trace = traces(tmp_path)[number]
    whole = diagnose(trace, "log")
    for group in groups_of(trace):
        check(whole, diagnose(without(trace, frozenset({group})), "log"), str(group))
    assert diagnose(without(trace, frozenset(groups_of(trace))), "log").verdict == "undetermined"
