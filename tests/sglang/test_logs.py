"""The log of every real launch by itself: what it says of the phase, and that no cut of it is ever a hang."""

from __future__ import annotations

from pathlib import Path

from hangdoc.diagnosis import diagnose
from hangdoc.engines.sglang import ENGINE
from hangdoc.logs.lines import events
from hangdoc.logs.read import Wishes, read
from hangdoc.model.diagnosis import Diagnosis
from tests.sglang.cases import ALL, on
from tests.sglang.launches import Launch
from tests.sglang.test_diagnosis import SICK


def of(data: bytes, directory: Path) -> Diagnosis:
    log = directory / "server.log"
    log.write_bytes(data)
    return diagnose(read([log], Wishes()), "log")


@on(*ALL)
def test_no_cut_of_a_log_is_a_hang(launch: Launch, tmp_path: Path) -> None:
    """Cut after any line that says something, the log of a launch, well or ill, is not enough to call it hung."""
    data = launch.log.read_bytes()
    ends = [data.find(b"\n", event.offset) + 1 or len(data) for event in events(data + b"\n", ENGINE)]
    for end in sorted(set(ends)):
        assert of(data[:end], tmp_path).verdict in {"undetermined", "slow-start", "healthy", "crashed"}


@on(*SICK)
def test_the_phase_of_a_sick_launch(launch: Launch, tmp_path: Path) -> None:
    """The log alone names the phase in which the launch stands; the verdict is left to the readings."""
    found = of(launch.log.read_bytes(), tmp_path)
    assert found.log is not None
    if not found.log.failures and found.phase != "shutdown":  # nobody has ended it yet
        truth = SICK[launch.log.parent.name]
        assert found.phase == truth.phase
        assert found.verdict in {"undetermined", truth.verdict} - {"busy-wait", "blocked"}
