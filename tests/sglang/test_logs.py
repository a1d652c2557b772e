"""The log of every real launch by itself: what it says of the phase, and that no cut of it is ever a hang."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path

from hangdoc.diagnosis import diagnose
from hangdoc.engines.sglang import ENGINE
from hangdoc.logs.lines import events
from hangdoc.logs.moment import moment
from hangdoc.logs.read import Wishes, read
from hangdoc.model.diagnosis import Diagnosis
from tests.sglang.cases import ALL, on
from tests.sglang.launches import Launch
from tests.sglang.test_diagnosis import SICK

NOWS = (None, 5, 119, 365 * 86_400)
"""Seconds of silence after the last line that has a time; None: no word on until when it stayed so."""


def of(data: bytes, directory: Path, silent_s: int | None = None) -> Diagnosis:
    log = directory / "server.log"
    log.write_bytes(data)
    last = re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", data.decode("utf-8", "replace"))
    if silent_s is None or not last:
        return diagnose(read([log], Wishes()), "log")
    now = datetime.fromisoformat(last[-1]) + timedelta(seconds=silent_s)
    return diagnose(read([log], Wishes(now=moment(f"{now:%Y-%m-%d %H:%M:%S}"))), "log")


@on(*ALL)
def test_no_cut_of_a_log_is_a_hang(launch: Launch, tmp_path: Path) -> None:
    """Cut after any line that says something, however long silent, the log of a launch is never a confirmed hang.

    With no word on until when it stayed so it is no hang at all, and one of a good start is never a failure either.
    """
    data = launch.log.read_bytes()
    is_good = launch.log.parent.name.startswith(("healthy", "slow"))
    ends = [data.find(b"\n", event.offset) + 1 or len(data) for event in events(data + b"\n", ENGINE)]
    for end in sorted(set(ends)):
        for silent_s in NOWS:
            found = of(data[:end], tmp_path, silent_s)
            assert found.verdict in {"undetermined", "slow-start", "healthy", "crashed"}, (end, found.headline)
            assert found.verdict != "crashed" or not is_good, (end, found.headline)


@on(*SICK)
def test_the_phase_of_a_sick_launch(launch: Launch, tmp_path: Path) -> None:
    """The log alone names the phase in which the launch stands; the verdict is left to the readings."""
    found = of(launch.log.read_bytes(), tmp_path)
    assert found.log is not None
    if not found.log.failures and found.phase != "shutdown":  # nobody has ended it yet
        truth = SICK[launch.log.parent.name]
        assert found.phase == truth.phase
        assert found.verdict in {"undetermined", truth.verdict} - {"busy-wait", "blocked"}
