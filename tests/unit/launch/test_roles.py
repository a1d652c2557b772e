"""Roles and ranks from titles, command lines and parentage."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hangdoc.launch.commands import Kind, kind_of
from hangdoc.launch.find import find_launch
from hangdoc.launch.recognise import engine_named, recognise
from hangdoc.launch.settings import read_settings
from hangdoc.launch.table import read_entry
from hangdoc.model.process import EngineName, Role
from tests.unit.launch.stage import Stage

SPAWN_STAGE = (
    "python3",
    "-B",
    "-c",
    "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=7, pipe_handle=9)",
    "--multiprocessing-fork",
)
TRACKER = ("python3", "-B", "-c", "from multiprocessing.resource_tracker import main;main(6)")


@pytest.mark.parametrize(
    ("argv", "engine", "role", "rank"),
    [
        (("sglang::scheduler_DP0_TP1",), "sglang", "scheduler", {"dp": 0, "tp": 1}),
        (("sglang::scheduler_PP1_TP3_EP3",), "sglang", "scheduler", {"pp": 1, "tp": 3, "ep": 3}),
        (
            ("sglang::scheduler_DP1_PP0_ATTN_CP0_MOE_DP0_TP2_EP2",),
            "sglang",
            "scheduler",
            {"dp": 1, "pp": 0, "tp": 2, "ep": 2},
        ),
        (("sglang::scheduler",), "sglang", "scheduler", {}),
        (("sglang::scheduler_TP0", "behind"), "sglang", "scheduler", {"tp": 0}),
        (("sglang::detokenizer",), "sglang", "detokenizer", {}),
        (("sglang::detokenizer_router",), "sglang", "router", {}),
        (("sglang::data_parallel_controller",), "sglang", "router", {}),
        (("sglang::tokenizer_worker:77",), "sglang", "tokenizer", {}),
        (("VLLM::APIServer_1",), "vllm", "tokenizer", {}),
        (("VLLM::EngineCore",), "vllm", "scheduler", {}),
        (("VLLM::EngineCore_DP1",), "vllm", "scheduler", {"dp": 1}),
        (("VLLM::DPEngineCore_2",), "vllm", "scheduler", {"dp": 2}),
        (("VLLM::Worker",), "vllm", "worker", {}),
        (("VLLM::Worker_PP1_TP0_EP0",), "vllm", "worker", {"pp": 1, "tp": 0, "ep": 0}),
        (("VLLM::VllmWorker_TP1",), "vllm", "worker", {"tp": 1}),
        (("VLLM::DPCoordinator",), "vllm", "router", {}),
        (("python3", "-m", "sglang.launch_server", "--tp", "2"), "sglang", "launcher", {}),
        (("/v/bin/python", "/v/bin/sglang", "serve", "m"), "sglang", "launcher", {}),
        (("/v/bin/python3.12", "/v/bin/vllm", "serve", "m"), "vllm", "launcher", {}),
        (("python", "-u", "-m", "vllm.entrypoints.openai.api_server"), "vllm", "launcher", {}),
        (("python", "/v/bin/torchrun", "--nproc-per-node", "2", "t.py"), "torchrun", "launcher", {}),
        (("python", "-m", "torch.distributed.run", "t.py"), "torchrun", "launcher", {}),
        (SPAWN_STAGE, None, "other", {}),
        (TRACKER, None, "other", {}),
        (("/usr/local/cuda/bin/nvcc", "-c", "x.cu"), None, "compiler", {}),
        (("cicc", "--arch", "x"), None, "compiler", {}),
        (("/cuda/bin/ptxas", "x.ptx"), None, "compiler", {}),
        (("ninja", "-v"), None, "compiler", {}),
        (("/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus", "-quiet"), None, "compiler", {}),
        (("python", "/v/torch/_inductor/compile_worker/__main__.py", "--parent=7"), None, "compiler", {}),
        (("vim", "-m", "sglang.launch_server"), None, "other", {}),
        (("python", "watch.py", "python -m sglang.launch_server"), None, "other", {}),
        (("python", "-c", "x = '-m sglang.launch_server'"), None, "other", {}),
    ],
)
def test_what_a_command_line_tells(
    argv: tuple[str, ...], engine: EngineName | None, role: Role, rank: dict[str, int]
) -> None:
    """Engine, role and rank come from the title or the program that the command line runs, never from an argument."""
    sighting = recognise(kind_of(7, argv, "x"), argv, "x")
    assert (sighting.engine, sighting.role, sighting.rank) == (engine, role, rank)


@pytest.mark.parametrize(
    ("argv", "kind"),
    [
        (("-bash",), "shell"),
        (("bash", "--norc", "-i"), "shell"),
        (("bash", "--rcfile", "x"), "shell"),
        (("zsh", "-l"), "shell"),
        (("bash", "-s", "argument"), "shell"),
        (("bash", "-o", "pipefail"), "shell"),
        (("bash", "run.sh"), "wrapper"),
        (("bash", "-eo", "pipefail", "run.sh"), "wrapper"),
        (("bash", "-lc", "python -m x"), "wrapper"),
        (("/bin/sh", "-c", "x"), "wrapper"),
        (("timeout", "9", "x"), "wrapper"),
        (("/usr/bin/tini", "--", "x"), "wrapper"),
        (("/v/bin/python", "/v/bin/conda", "run", "x"), "wrapper"),
        (("uv", "run", "x"), "wrapper"),
        (("/sbin/init",), "manager"),
        (("/usr/lib/systemd/systemd", "--user"), "manager"),
        (("sshd: user@pts/0",), "manager"),
        (("tmux", "new", "-s", "x"), "manager"),
        (("SCREEN", "-S", "x"), "manager"),
        (("/usr/bin/python3", "/usr/bin/supervisord"), "manager"),
        (("/usr/bin/containerd-shim-runc-v2", "-id", "x"), "manager"),
        (("python", "-m", "pytest", "-n2"), "host"),
        (("/v/bin/python", "/v/bin/pytest"), "host"),
        (("[pytest-xdist running] tests/x.py",), "host"),
        (("/v/bin/python", "-u", "-c", "import sys;exec(eval(sys.stdin.readline()))"), "host"),
        (("/v/bin/python", "-m", "ipykernel_launcher", "-f", "x"), "host"),
        (("/v/bin/python", "/v/bin/jupyter-lab"), "host"),
        (("python3",), "host"),
        (("nvim", "sglang.py"), "host"),
        (("tee", "log"), "companion"),
        (("python3", "tee.py"), "program"),
        (("/opt/server",), "program"),
    ],
)
def test_what_a_process_is_to_a_launch(argv: tuple[str, ...], kind: Kind) -> None:
    """Shells, managers, hosts, wrappers and companions are known by the name of what runs."""
    assert kind_of(7, argv, argv[0][:15]) == kind


def test_who_only_calls_himself_systemd_is_a_program() -> None:
    """systemd is known by where its program lies: the name alone makes nobody a manager of other people's programs."""
    program = subprocess.Popen(["systemd"], executable=sys.executable, stdin=subprocess.PIPE)
    try:
        entry = read_entry(Path("/proc"), program.pid)
        assert entry is not None
        assert (entry.argv, entry.kind) == (("systemd",), "program")
    finally:
        program.communicate()


def test_the_first_process_of_a_container() -> None:
    """Pid 1 is a manager unless it is a wrapper, a Python program or a launcher."""
    assert kind_of(1, ("/unknown/init",), "init") == "manager"
    assert kind_of(1, ("tini", "--", "x"), "tini") == "wrapper"
    assert kind_of(1, ("python", "-m", "sglang.launch_server"), "python") == "program"


def test_the_roles_of_a_launch(stage: Stage) -> None:
    """The tp-1 scheduler has rank 0, a child whose title is not set yet has none, and is not called a scheduler."""
    reader, writer = os.pipe()
    code = SPAWN_STAGE[3].replace("7", str(writer)).replace("9", str(reader))
    stalled = [*SPAWN_STAGE[:3], code, SPAWN_STAGE[4]]
    children = {
        "scheduler": {"argv": ["sglang::scheduler"]},
        "stalled": {"argv": stalled, "executable": "python3", "inherit": [reader, writer]},
        "compiler": {"argv": ["/usr/bin/ptxas"]},
    }
    server = stage.run(stage.server("a", children, "--tp-size=1"), "a", pass_fds=[reader, writer])
    os.close(reader)
    roles = {process.key.pid: (process.role, process.rank) for process in find_launch(server.pid).processes}
    os.close(writer)
    assert roles[server.pid] == ("launcher", {})
    assert roles[server.children["scheduler"]] == ("scheduler", {"tp": 0})
    assert roles[server.children["stalled"]] == ("other", {})
    assert roles[server.children["compiler"]] == ("compiler", {})
    stage.end(server.children["stalled"])


def test_the_rank_of_a_scheduler_of_unknown_size(stage: Stage) -> None:
    """Without a launcher's command line nothing says that tp is 1: no rank."""
    server = stage.run(stage.server("a", {"s": {"argv": ["sglang::scheduler"]}}, "--tp 1"), "a")
    stage.end(server.pid)
    assert [process.rank for process in find_launch(server.children["s"]).processes] == [{}]


def test_the_workers_of_torchrun(stage: Stage) -> None:
    """A worker's rank is in its environment; one without is a worker of no rank."""
    children = {
        "first": {"argv": ["train"], "own_session": True, "environment": {"RANK": "3", "LOCAL_RANK": "1"}},
        "second": {"argv": ["train"], "own_session": True, "environment": {"RANK": "x"}},
    }
    argv = stage.program("agent", children)
    program = next(word for word in argv if word.endswith("program.py"))
    torchrun = stage.directory / "torchrun"
    torchrun.write_text(Path(program).read_text())
    agent = stage.run([word if word != program else str(torchrun) for word in argv], "agent")
    launch = find_launch(agent.children["first"])
    found = {process.key.pid: (process.role, process.rank) for process in launch.processes}
    assert launch.engine == "torchrun"
    assert found == {
        agent.pid: ("launcher", {}),
        agent.children["first"]: ("worker", {"rank": 3, "local_rank": 1}),
        agent.children["second"]: ("worker", {}),
    }


@pytest.mark.parametrize(
    ("engine", "argv", "name", "value"),
    [
        ("sglang", "--tp 2", "tp_size", "2"),
        ("sglang", "--tp-size=4 --tensor-parallel-size 8", "tp_size", "8"),
        ("sglang", "", "port", "30000"),
        ("sglang", "--nnodes 2 --node-rank 1", "node_rank", "1"),
        ("sglang", "--skip-server-warmup", "skip_server_warmup", "true"),
        ("sglang", "", "skip_server_warmup", ""),
        ("vllm", "serve m -tp=2", "tp_size", "2"),
        ("vllm", "serve m --tensor_parallel_size 2", "tp_size", "2"),
        ("vllm", "serve m --config f.yaml", "port", None),
        ("torchrun", "--nproc_per_node=4 t.py", "nproc_per_node", "4"),
        ("sglang", "--port", "port", "30000"),
    ],
)
def test_settings(engine: EngineName, argv: str, name: str, value: str | None) -> None:
    """Every spelling is read, the last one counts; a default is not claimed where a file may say otherwise."""
    assert read_settings(tuple(argv.split()), engine_named(engine).options).get(name) == value
