"""What vLLM's stacks say: phases of a start, idling, batches; an idle worker that spins is no hang."""

from __future__ import annotations

import pytest

from hangdoc.criteria import weigh
from hangdoc.diagnosis import hypotheses
from hangdoc.engines.vllm import ENGINE
from hangdoc.features.features import features
from hangdoc.features.frames import read_stack
from hangdoc.model.diagnosis import HANG_VERDICTS
from hangdoc.model.log import Phase
from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.stack import Frame, Stack
from tests.unit.features.synthetic import Readings, clock, cpu, dump, links, progress, trace, whole

PACKAGE = "/venv/lib/python3.12/site-packages/vllm"
CORE, EXECUTOR = "v1/engine/core.py", "v1/executor/multiproc_executor.py"
WORKER, RUNNER = "v1/worker/gpu_worker.py", "v1/worker/gpu_model_runner.py"
RUNNER_2, CPU, CPU_RUNNER = "v1/worker/gpu/model_runner.py", "v1/worker/cpu_worker.py", "v1/worker/cpu_model_runner.py"
JIT: Phase = "jit-compile"
QUEUE = "distributed/device_communicators/shm_broadcast.py"


def stack(*frames: tuple[str, str]) -> Stack:
    """Innermost first, as py-spy reports them."""
    return tuple(Frame(function, f"{PACKAGE}/{file}", 10) for function, file in frames)


MAIN = ("WorkerProc.worker_main", EXECUTOR)
LOOP = ("WorkerProc.worker_busy_loop", EXECUTOR)
CORE_LOOP = ("EngineCoreProc.run_busy_loop", CORE)
IDLE_WORKER = stack(("MessageQueue.acquire_read", QUEUE), ("MessageQueue.dequeue", QUEUE), LOOP, MAIN)
IDLE_CORE = stack(("EngineCoreProc._process_input_queue", CORE), CORE_LOOP, ("EngineCoreProc.run_engine_core", CORE))
LOADING = stack(("GPUModelRunner.load_model", RUNNER), ("Worker.load_model", WORKER), ("WorkerProc.__init__", EXECUTOR))


@pytest.mark.parametrize(
    ("seen", "phase"),
    [
        (IDLE_WORKER, "ready"),
        (IDLE_CORE, "ready"),
        (stack(("GPUModelRunner.execute_model", RUNNER), ("Worker.execute_model", WORKER), LOOP, MAIN), "serving"),
        (stack(("MessageQueue.dequeue", QUEUE), ("EngineCore.step", CORE), CORE_LOOP), "serving"),
        (LOADING, "weight-load"),
        (
            stack(("init_distributed_environment", "distributed/parallel_state.py"), ("Worker.init_device", WORKER)),
            "rendezvous",
        ),
        (stack(("GPUModelRunner.profile_run", RUNNER), ("Worker.determine_available_memory", WORKER)), "memory-pool"),
        (stack(("GPUModelRunner.capture_model", RUNNER), ("Worker.compile_or_warm_up_model", WORKER)), "graph-capture"),
        (stack(("GPUModelRunner.load_model", RUNNER_2), ("Worker.load_model", WORKER)), "weight-load"),
        (stack(("GPUModelRunner.execute_model", RUNNER_2), ("Worker.execute_model", WORKER), LOOP), "serving"),
        (stack(("CPUModelRunner.warming_up_model", CPU_RUNNER), ("CPUWorker.compile_or_warm_up_model", CPU)), JIT),
        (
            stack(
                ("CPUWorker.init_device", CPU),
            ),
            "rendezvous",
        ),
    ],
)
def test_phase(seen: Stack, phase: Phase) -> None:
    """The outermost frame that a rule knows gives the phase, the loop refined by what runs in it."""
    assert read_stack(seen, ENGINE).phase == phase


def test_an_idle_server_whose_worker_spins_is_well() -> None:
    """A worker that burns a core asking shared memory for the next batch, and a core that sleeps, are idle: no hang."""
    core = Process(key=ProcessKey(100, 1), ppid=1, role="scheduler")
    worker = Process(key=ProcessKey(101, 1), ppid=100, role="worker")
    rounds: list[Readings] = [
        {
            ("cpu", core.key): cpu(clock()),
            ("cpu", worker.key): cpu(clock(float(number), slices=number, tid=101)),
            **{("progress", key): progress() for key in (core.key, worker.key)},
            **{("links", key): links(received=0) for key in (core.key, worker.key)},
            ("stacks", core.key): dump((100, 0)),
            ("stacks", worker.key): dump((101, 1)),
        }
        for number in range(6)
    ]
    of = trace(rounds, processes=[core, worker], stacks=[IDLE_CORE, IDLE_WORKER], engine="vllm")
    found = features(of, ENGINE, whole(of), steady=True)
    grades = {one.id: weigh(one, found).grade for one in hypotheses()}
    assert grades["HD501"] in {"likely", "confirmed"}
    assert not {
        one.id for one in hypotheses() if one.verdict in HANG_VERDICTS and grades[one.id] in {"likely", "confirmed"}
    }
