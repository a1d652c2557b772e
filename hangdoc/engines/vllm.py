"""vLLM: how its processes are named (0.6 to 0.12, as its own set_process_title does), and what V1's frames mean."""

from __future__ import annotations

import re

from hangdoc.model.engine import Activity, Engine, FrameRule, Option, Title
from hangdoc.model.log import Phase

_RANK = (
    r"(?:_DP(?P<dp>\d+))?(?:_PP(?P<pp>\d+))?(?:_PCP(?P<pcp>\d+))?(?:_TP(?P<tp>\d+))?(?:_DCP(?P<dcp>\d+))?"
    r"(?:_EP(?P<ep>\d+))?"
)

# The prefix is VLLM_PROCESS_NAME_PREFIX, "VLLM" unless somebody changes it. Titles exist since 0.10; before, forked
# children carry the launcher's own command line and spawned ones that of spawn_main.
TITLES = (
    Title(re.compile(r"^VLLM::APIServer(?:_\d+)?$"), "tokenizer"),
    Title(re.compile(r"^VLLM::DPCoordinator"), "router"),
    Title(re.compile(r"^VLLM::(?:DP)?EngineCore(?:_(?:DP)?(?P<dp>\d+))?$"), "scheduler"),
    Title(re.compile(r"^VLLM::EngineCor"), "scheduler"),
    Title(re.compile(rf"^VLLM::(?:Vllm)?Worker{_RANK}$"), "worker"),
    Title(re.compile(r"^VLLM::(?:Vllm)?Worker"), "worker"),
)

OPTIONS = (
    Option("tp_size", ("--tensor-parallel-size", "-tp"), "1"),
    Option("pp_size", ("--pipeline-parallel-size", "-pp"), "1"),
    Option("dp_size", ("--data-parallel-size", "-dp"), "1"),
    Option("nnodes", ("--nnodes", "-n"), "1"),
    Option("node_rank", ("--node-rank", "-r"), "0"),
    Option("port", ("--port",), "8000"),
)

_CORE, _EXECUTOR = "vllm/v1/engine/core.py", "vllm/v1/executor/multiproc_executor.py"
_WORKER, _RUNNER = "v1/worker/gpu_worker.py", "v1/worker/gpu_model_runner.py"
_QUEUE = "distributed/device_communicators/shm_broadcast.py"


def _frame(activity: Activity, function: str, file: str, phase: Phase = "unknown") -> FrameRule:
    return FrameRule(activity, re.compile(function), file, phase)


# Read from the sources of V1. An engine core without requests waits in _process_input_queue; a worker without any waits
# in the shared-memory queue, spinning at first, straight below worker_busy_loop: with no batch above it that is idling.
FRAMES = (
    _frame("idle-poll", r"_process_input_queue", _CORE, "ready"),
    _frame("forward", r"_process_engine_step|step|step_with_batch_queue|execute_dummy_batch", _CORE, "serving"),
    _frame("event-loop", r"run_busy_loop", _CORE, "ready"),
    _frame("parent-wait", r"wait_for_ready|wait_until_ready", _EXECUTOR),
    _frame("parent-wait", r"wait_for_engine_startup|wait_for_completion_or_failure", ""),
    _frame("helper", r"monitor_workers|monitor_parent_death", _EXECUTOR),
    _frame("event-loop", r"worker_busy_loop", _EXECUTOR, "ready"),
    _frame("queue", r"dequeue|enqueue|acquire_read|acquire_write|wait_until_ready", _QUEUE),
    _frame("rendezvous", r"init_device|init_worker_distributed_environment", _WORKER, "rendezvous"),
    _frame("rendezvous", r"init_distributed_environment|initialize_model_parallel", "", "rendezvous"),
    _frame("load", r"load_model", _WORKER, "weight-load"),
    _frame("load", r"load_model", _RUNNER, "weight-load"),
    _frame("memory-pool", r"determine_available_memory|initialize_from_config", _WORKER, "memory-pool"),
    _frame("graph-capture", r"capture_model", _RUNNER, "graph-capture"),
    _frame("graph-capture", r"compile_or_warm_up_model", _WORKER, "graph-capture"),
    _frame("forward", r"execute_model|execute_dummy_batch|sample_tokens", _WORKER, "serving"),
    _frame("forward", r"execute_model|sample_tokens", _RUNNER, "serving"),
)

ENGINE = Engine(
    name="vllm",
    launchers=(
        re.compile(r"(?:^|[\s/])vllm\s+serve(?:\s|$)"),
        re.compile(r"^-m\s+vllm\.entrypoints\.(?:openai\.api_server|api_server|cli\.main)(?:\s|$)"),
        re.compile(r"(?:^|/)vllm/entrypoints/(?:openai/)?api_server\.py(?:\s|$)"),
    ),
    distribution="vllm",
    titles=TITLES,
    options=OPTIONS,
    frames=FRAMES,
)
