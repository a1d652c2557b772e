"""A vLLM launch is found from any of its processes, by the titles that its releases set over their command lines."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from hangdoc.launch.find import find_launch
from hangdoc.launch.recognise import recognise
from hangdoc.model.process import Role
from tests.unit.launch.stage import Stage

WORKERS = {f"tp{rank}": {"argv": [f"VLLM::Worker_TP{rank}"]} for rank in range(2)}
ONE_ENGINE = {"core": {"spawn": True, "argv": ["VLLM::EngineCore"], "children": WORKERS}}
DATA_PARALLEL = {
    "server0": {"spawn": True, "argv": ["VLLM::APIServer_0"]},
    "server1": {"spawn": True, "argv": ["VLLM::APIServer_1"]},
    "coordinator": {"spawn": True, "argv": ["VLLM::DPCoordinator"]},
    **{
        f"core{rank}": {
            "spawn": True,
            "argv": [f"VLLM::EngineCore_DP{rank}"],
            "children": {f"worker{rank}": {"argv": [f"VLLM::Worker_DP{rank}_EP{rank}"]}},
        }
        for rank in range(2)
    },
}
"""`--data-parallel-size 2 --api-server-count 2 --enable-expert-parallel`, 0.16 to 0.32."""


def serve(stage: Stage, name: str, children: dict[str, Any], *options: str) -> list[str]:
    """Return the command line of a stand-in for `vllm serve`."""
    python = [*stage.server(name, children)[:-4], "-m", "vllm.entrypoints.cli.main"]
    assert sys.executable in python
    return [*python, "serve", "m", *options]


def found(stage: Stage, children: dict[str, Any], *options: str) -> list[tuple[Role, dict[str, int]]]:
    """Start a launch, wait until every process has its title, and return the members found from the last engine."""
    server = stage.run(serve(stage, "a", children, *options), "a")
    actors = [stage.wait_for(f"a.{name}") for name in children]
    for name in children:
        stage.wait_for(f"a.{name}.renamed")
    launch = find_launch(actors[-1].pid)
    assert (launch.engine, launch.root.pid) == ("vllm", server.pid)
    assert {pid for actor in actors for pid in actor.pids} <= {process.key.pid for process in launch.processes}
    told = [(process.role, dict(process.rank)) for process in launch.processes if process.role != "other"]
    return sorted(told, key=str)


def test_an_engine_with_two_workers(stage: Stage) -> None:
    """Launcher, engine core and the workers below it, each with its rank."""
    assert found(stage, ONE_ENGINE, "--tensor-parallel-size", "2") == [
        ("launcher", {}),
        ("scheduler", {}),
        ("worker", {"tp": 0}),
        ("worker", {"tp": 1}),
    ]


def test_data_parallel_engines_behind_two_servers(stage: Stage) -> None:
    """Each engine core and its worker have their data-parallel rank; servers and coordinator are no ranks."""
    assert found(stage, DATA_PARALLEL, "--data-parallel-size", "2") == [
        ("launcher", {}),
        ("router", {}),
        ("scheduler", {"dp": 0}),
        ("scheduler", {"dp": 1}),
        ("tokenizer", {}),
        ("tokenizer", {}),
        ("worker", {"dp": 0, "ep": 0}),
        ("worker", {"dp": 1, "ep": 1}),
    ]


@pytest.mark.parametrize(
    ("title", "role"),
    [
        ("VLLM::APIServer_0", "tokenizer"),
        ("VLLM::APIServer_DP1", "tokenizer"),
        ("VLLM::DPCoordinator", "router"),
        ("VLLM::EngineCore_DP0", "scheduler"),
        ("VLLM::Worker_DP0_PP1_TP1_EP3", "worker"),
    ],
)
def test_a_zombie_keeps_its_role(title: str, role: Role) -> None:
    """Of a process that has ended the kernel's short name is all that is left, and says the same role."""
    assert recognise("program", (title,), title[:15]).role == role
    assert recognise("program", (), title[:15]).role == role
