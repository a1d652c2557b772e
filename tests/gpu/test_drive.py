"""The driver for a GPU machine, tried where there is none, with a stand-in for the server."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from tests.gpu import drive
from tests.gpu.look import is_right
from tests.gpu.measures import interval
from tests.gpu.scenarios import LIST, MEASURES, SCENARIOS
from tests.gpu.server import HOOKS, Machine, command_of, environment_of
from tests.unit.cli.commands import argv

MACHINE = Machine(("python", "-m", "sglang.launch_server"), Path("/models/tiny"), one_card=Path("/lib/libnccl.so.2"))
STAND_IN = Path(__file__).with_name("stand_in.py")


@pytest.mark.parametrize("name", SCENARIOS)
def test_how_a_server_is_started(name: str) -> None:
    """Every scenario has a command and an environment: hooks first, RAS on a port of its own, no NVLink multicast."""
    scenario = SCENARIOS[name]
    command = command_of(scenario, MACHINE, 31000)
    environment = environment_of(scenario, MACHINE, Path("/d"), 31000)
    assert command[command.index("--tp") + 1] == str(scenario.ranks)
    assert environment["PYTHONPATH"].split(":")[0] == str(HOOKS)
    assert environment["NCCL_RAS_ADDR"] == "localhost:31001"
    assert environment["NCCL_NVLS_ENABLE"] == "0"
    assert ("HANG_ONE_GPU" in environment) is (scenario.ranks > 1)
    assert bool(environment["HANG_WHEN"]) is scenario.serving


def test_every_scenario_can_be_brought_about() -> None:
    """Each is either made ill by the hooks or looked at when its log says something; names are used once."""
    assert all(bool(one.mode) != bool(one.ready) for one in LIST)
    assert len(SCENARIOS) == len(LIST)
    assert not set(SCENARIOS) & set(MEASURES)
    modes = HOOKS.joinpath("sitecustomize.py").read_text()
    assert all(f'"{one.mode}"' in modes for one in LIST if one.mode)


@pytest.mark.parametrize(
    ("verdict", "culprits", "right"),
    [("busy-wait", [1], True), ("busy-wait", [0], False), ("busy-wait", [], False), ("healthy", [1], False)],
)
def test_what_is_right(verdict: str, culprits: list[int], right: bool) -> None:
    """The verdict and the culprit have to be those of the scenario."""
    scenario = SCENARIOS["short-of-a-rank-serving"]
    assert is_right(scenario, {"verdict": verdict, "culprits": culprits}) is right


def test_the_interval_of_ratios() -> None:
    """Equal ratios have an interval of no width, one ratio has none, and scattered ones have one on both sides."""
    assert interval([0.99] * 5) == {"mean": 0.99, "low": 0.99, "high": 0.99}
    assert interval([1.0])["mean"] is None
    spread = interval([0.9, 1.0, 1.1])
    assert spread["low"] < 0.9
    assert spread["high"] > 1.1


def test_what_was_reached_is_not_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Results are kept by name, the last attempt counting, and a call with nothing left only prints the table."""
    rows = [{"name": "slow-load", "reached": good, "right": good} for good in (False, True)]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert drive.main(["--out", str(tmp_path), "--model", "/m", "--server", "false", "slow-load"]) == 0
    assert "| slow-load | yes |" in capsys.readouterr().out


@pytest.mark.slow  # a whole look and a whole end
def test_a_scenario_from_its_start_to_its_end(tmp_path: Path) -> None:
    """A server is started held, released, falls ill, is diagnosed rightly with a trace, and is ended without a rest."""
    hangdoc = shlex.join(argv())
    server = f"{sys.executable} {STAND_IN}"
    code = drive.main(
        [
            *("--out", str(tmp_path), "--model", "/m", "--server", server, "--hangdoc", hangdoc),
            *("--port", "23470", "--limit", "400", "python-loop"),
        ]
    )
    (row,) = drive.rows_of(tmp_path)
    assert (code, row["right"], row["verdict"], row["kill_code"]) == (0, True, "busy-wait", 0), row
    assert (tmp_path / "python-loop.hangtrace").stat().st_size > 0
    assert row["left_stopped"] == []
