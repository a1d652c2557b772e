"""Which timers end a launch that stands still, as they are set for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hangdoc.engines.sglang import ENGINE, LIMITS, OPTIONS
from hangdoc.launch.limits import read_environment, read_limits
from hangdoc.launch.settings import read_settings
from hangdoc.trace.reader import read
from hangdoc.trace.records import Header
from hangdoc.trace.writer import Writer
from tests.unit.observe.rounds import HEADER, alive


def limits_of(*argv: str, **environment: str) -> dict[str, float]:
    return dict(read_limits(LIMITS, read_settings(argv, OPTIONS), environment))


@pytest.mark.parametrize(
    ("argv", "environment", "name", "seconds"),
    [
        ((), {}, "watchdog", 300.0),
        (("--watchdog-timeout", "20"), {}, "watchdog", 20.0),
        (("--watchdog-timeout=1e4",), {}, "watchdog", 10_000.0),
        (("--watchdog-timeout", "0"), {}, "watchdog", None),
        (("--watchdog-timeout", "soon"), {}, "watchdog", None),
        ((), {}, "collective", 600.0),
        (("--dist-timeout", "1800"), {}, "collective", 1800.0),
        ((), {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}, "collective", None),
        ((), {"NCCL_ASYNC_ERROR_HANDLING": "2"}, "collective", None),
        ((), {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "3"}, "collective", 600.0),
        ((), {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0", "TORCH_NCCL_BLOCKING_WAIT": "True"}, "collective", 600.0),
        ((), {}, "nccl-monitor", 480.0),
        ((), {"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "1200"}, "nccl-monitor", 1200.0),
        ((), {"TORCH_NCCL_ENABLE_MONITORING": "No"}, "nccl-monitor", None),
        ((), {"TORCH_NCCL_ENABLE_MONITORING": "0"}, "collective", 600.0),
        ((), {}, "soft-watchdog", None),
        (("--soft-watchdog-timeout", "100"), {}, "soft-watchdog", 100.0),
        ((), {}, "warmup-request", 600.0),
        ((), {"SGLANG_WARMUP_TIMEOUT": "42"}, "warmup-request", 42.0),
        (("--config", "x.yaml"), {}, "watchdog", None),
        (("--config", "x.yaml", "--watchdog-timeout", "30"), {}, "watchdog", 30.0),
    ],
)
def test_of_sglang(argv: tuple[str, ...], environment: dict[str, str], name: str, seconds: float | None) -> None:
    """As given, else the default; none where it is off, or where options may stand in a file."""
    assert limits_of(*argv, **environment).get(name) == seconds


def test_an_environment_that_is_not_read() -> None:
    """What only the environment sets is then left out, instead of guessed to be the default."""
    found = read_limits(LIMITS, read_settings((), OPTIONS), None)
    assert "warmup-request" not in found
    assert found["watchdog"] == 300.0


def test_the_environment_of_a_process() -> None:
    """Only what is asked for is taken from a process's environment; of one that is gone nothing is read."""
    child = subprocess.Popen([sys.executable, "-ISc", "input()"], stdin=subprocess.PIPE, env={"A": "1", "B": "x=y"})
    try:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        assert read_environment(Path("/proc"), child.pid, ["B", "C"]) == {"B": "x=y"}
    finally:
        child.communicate()
    assert read_environment(Path("/proc"), child.pid, ["B"]) is None
    assert read_environment(Path("/proc"), child.pid, []) == {}


def test_a_redacted_trace_keeps_them(tmp_path: Path) -> None:
    """They are numbers and known names: a recording has them, and its replay tells the time left."""
    launch = HEADER.launch.__class__(root=HEADER.launch.root, engine=ENGINE.name, limits={"watchdog": 20.0})
    header = Header(
        **{name: getattr(HEADER, name) for name in HEADER.__struct_fields__ if name != "launch"}, launch=launch
    )
    with Writer.open(tmp_path / "a.hangtrace", header) as writer:
        writer.add(alive(0), ())
    assert read(tmp_path / "a.hangtrace").header.launch.limits == {"watchdog": 20.0}
