"""vLLM, 0.6 to 0.32: how its processes are named (as its own set_process_title does), its frames, what it prints.

Compared with the released sources of 0.8.5, 0.10.2, 0.12.0, 0.16.0, 0.20.2, 0.26.0 and 0.32.0, texts of older ones are
from public logs; a version beside a rule is the first, or with "until" the last, of these that has it.
"""

from __future__ import annotations

import re

from hangdoc.engines._failures import failure
from hangdoc.engines._torch import LINES, complaint, nccl_limits
from hangdoc.model.engine import Activity, Engine, FrameRule, LogLine, Option, Step, TimeLimit, Title
from hangdoc.model.log import LogEventKind, Phase

_RANK = (
    r"(?:_DP(?P<dp>\d+))?(?:_PP(?P<pp>\d+))?(?:_PCP(?P<pcp>\d+))?(?:_TP(?P<tp>\d+))?(?:_DCP(?P<dcp>\d+))?"
    r"(?:_EP(?P<ep>\d+))?"
)

# The prefix is VLLM_PROCESS_NAME_PREFIX, "VLLM" unless somebody changes it. Titles exist since 0.10; before, forked
# children carry the launcher's own command line and spawned ones that of spawn_main.
TITLES = (
    # "APIServer_1" with several of them; "APIServer_DP1" under a supervisor of data-parallel servers, 0.26.
    Title(re.compile(r"^VLLM::APIServer(?:_(?:DP)?\d+)?$"), "tokenizer"),
    # Without the end: what is left of a zombie's title is the kernel's short name, 15 bytes.
    Title(re.compile(r"^VLLM::DPCoordin"), "router"),
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
_RUNNER_2 = "v1/worker/gpu/model_runner.py"  # beside the other one, from 0.12
_CPU_WORKER, _CPU_RUNNER = "v1/worker/cpu_worker.py", "v1/worker/cpu_model_runner.py"
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
    _frame("helper", r"monitor_workers|monitor_parent_death", _EXECUTOR),  # the latter until 0.16, then:
    _frame("helper", r"death_pipe_monitor|async_output_busy_loop", _EXECUTOR),
    _frame("event-loop", r"worker_busy_loop", _EXECUTOR, "ready"),
    _frame("queue", r"dequeue|enqueue|acquire_read|acquire_write|wait_until_ready", _QUEUE),
    _frame("rendezvous", r"init_device|init_worker_distributed_environment", _WORKER, "rendezvous"),
    _frame("rendezvous", r"init_distributed_environment|initialize_model_parallel", "", "rendezvous"),
    _frame("load", r"load_model", _WORKER, "weight-load"),
    *(_frame("load", r"load_model", runner, "weight-load") for runner in (_RUNNER, _RUNNER_2, _CPU_RUNNER)),
    _frame("memory-pool", r"determine_available_memory|initialize_from_config", _WORKER, "memory-pool"),
    *(_frame("graph-capture", r"capture_model", runner, "graph-capture") for runner in (_RUNNER, _RUNNER_2)),
    _frame("graph-capture", r"compile_or_warm_up_model", _WORKER, "graph-capture"),
    # The CPU's worker inherits the other steps from the GPU's.
    _frame("rendezvous", r"init_device", _CPU_WORKER, "rendezvous"),
    _frame("memory-pool", r"determine_available_memory", _CPU_WORKER, "memory-pool"),
    _frame("compile", r"warming_up_model", _CPU_RUNNER, "jit-compile"),
    _frame("compile", r"compile_or_warm_up_model", _CPU_WORKER, "jit-compile"),
    _frame("forward", r"execute_model|execute_dummy_batch|sample_tokens", _WORKER, "serving"),
    *(_frame("forward", r"execute_model|sample_tokens", runner, "serving") for runner in (_RUNNER, _RUNNER_2)),
)


def _line(name: str, pattern: str, text: str, phase: Phase = "unknown", kind: LogEventKind = "milestone") -> LogLine:
    return LogLine(name, kind, re.compile(pattern), text, phase)


_ZERO = r"Avg prompt throughput: 0\.0 tokens/s, Avg generation throughput: 0\.0 tokens/s"

# Wordings of both engine generations; the log's own prefix (level, time, module and line) is off when these are tried.
# A line that says that something has ended leaves the phase as it is: what comes next says so by itself.
LOG_LINES = (
    # From 0.16 on the version stands beside a logo, or "API" is not said.
    _line(
        "server-args",
        r"vLLM (?:API )?server version|█ {1,9}version {1,9}\d",
        "vLLM API server version",
        "launch",
    ),
    _line("engine-config", r"^Initializing (?:a V1|an) LLM engine", "Initializing the LLM engine", "launch"),
    _line("rendezvous-begin", r"world_size=\d+ rank=\d+ local_rank=\d+ distributed_init", "world_size", "rendezvous"),
    _line("nccl-version", r"is using nccl==(?P<version>[\d.]+)", "is using NCCL", "rendezvous"),
    _line("custom-all-reduce", r"Custom ?[Aa]llreduce is disabled", "no custom all_reduce", "rendezvous"),
    _line("rendezvous-end", r"^rank \d+ in world size \d+ is assigned as", "ranks are assigned", "weight-load"),
    _line(
        "load-weight-begin",
        r"^(?:Starting to load|Loading) model (?!weights took)",
        "Starting to load model",
        "weight-load",
    ),
    _line("weights-read", r"^Loading weights took", "Loading weights took", "weight-load"),
    _line("load-weight-end", r"^Model loading took|^Loading model weights took", "Model loading took", "memory-pool"),
    _line(
        "compile-begin",
        r"^Using cache directory:.*torch\.compile|^Start compiling function|Dynamo bytecode transform time|"
        r"^Warming up model for the compilation",
        "torch.compile",
        "jit-compile",
    ),
    _line(
        "compile-graph",
        r"Compiling a graph for|Cache the graph (?:for|of)|Directly load",
        "Compiling a graph",
        "jit-compile",
    ),
    # "takes" until 0.16, "took" from 0.20; a label of the encoder may stand before it.
    _line(
        "compile-end", r"\btorch\.compile (?:takes|took) [\d.]+ s in total", "torch.compile has ended", "jit-compile"
    ),
    _line(
        "kv-cache-allocated",
        r"^(?:GPU|CPU) KV cache size:|^# (?:GPU|CPU|cuda|cpu) blocks:|^Maximum concurrency for",
        "KV cache size",
        "memory-pool",
    ),
    _line(
        "capture-begin",
        r"^Capturing (?:the model for )?(?:CUDA graph|cudagraph)s?(?!.*:\s+\d+%)",
        "Capturing CUDA graphs",
        "graph-capture",
    ),
    _line(
        "capture-bar",
        r"Capturing (?:[\w-]+ ){0,3}(?:CUDA|cuda) ?graph[^:]*:\s+(?P<percent>\d+)%",
        "capturing graphs {percent} %",
        "graph-capture",
        "progress",
    ),
    _line("capture-end", r"^Graph capturing finished", "Graph capturing finished", "graph-capture"),
    _line("ready-summary", r"^init engine \(profile, create kv cache, warmup model\) took", "init engine took"),
    _line("http-started", r"^INFO:\s+Started server process \[(?P<pid>\d+)", "Started server process", "warmup"),
    _line("http-listening", r"^INFO:\s+Uvicorn running on|^Starting vLLM (?:API )?server", "Uvicorn running", "warmup"),
    _line("ready", r"^INFO:\s+Application startup complete", "Application startup complete", "ready"),
    _line("throughput-idle", rf"{_ZERO}.*Running: (?P<running>0) reqs", "no throughput", kind="batch"),
    _line("throughput-none", rf"{_ZERO}.*Running: (?P<running>\d+) reqs", "no throughput", kind="batch"),
    _line("throughput", r"Avg prompt throughput:.*Running: (?P<running>\d+) reqs", "throughput", kind="batch"),
    _line("generate-done", r'"POST /(?:generate|v1/\S+) HTTP/1.1" 200', "POST 200", kind="batch"),
    _line("request-failed", r'"POST /(?:generate|v1/\S+) HTTP/1.1" (?P<status>[45]\d\d)', "POST failed", kind="batch"),
    _line("health-answered", r'"GET /health(?:_generate)? HTTP/1.1" 200', "GET health 200", kind="batch"),
    _line(
        "health-refused", r'"GET /health(?:_generate)? HTTP/1.1" (?P<status>5\d\d)', "GET health failed", kind="batch"
    ),
    # Says "[shutdown]" as well, 0.32: the engine was gone before anybody asked for it.
    failure("core-died", r"engine core exited unexpectedly", "the engine core died", victim=True),
    _line(
        "shutdown",
        r"^INFO:\s+Shutting down|^Shutting down FastAPI|^\[shutdown\]|exited with code (?:130|143)$",
        "Shutting down",
        "shutdown",
    ),
    failure("engine-core", r"EngineCore (?:encountered a fatal error|failed to start)", "EngineCore failed"),
    failure("worker-died", r"Worker proc \S*?-(?P<rank>\d+) died unexpectedly", "worker {rank} died"),
    failure("worker-died", r"RayWorkerProc rank=(?P<rank>\d+) died unexpectedly", "worker {rank} died"),
    failure("worker-failed", r"WorkerProc hit an exception", "a worker failed"),
    failure("worker-failed", r"WorkerProc failed to start", "a worker failed"),
    failure("cancelled-wait", r"^RuntimeError: cancelled$", "a wait for the workers was cancelled", victim=True),
    failure("workers-failed", r"WorkerProc initialization failed", "a worker did not start", victim=True),
    failure("core-died", r"Engine core proc(?:ess)? \S+ died unexpectedly", "the engine core died", victim=True),
    failure("core-start", r"Engine core initialization failed", "the engine core did not start", victim=True),
    # From 0.16, after VLLM_ENGINE_READY_TIMEOUT_S, 600 s unless set.
    failure(
        "core-start",
        r"Timed out waiting for (?:new )?engine core processes to start",
        "the engine core did not start in time",
        victim=True,
    ),
    failure("engine-dead", r"EngineDeadError", "the engine is dead", victim=True),
    # Of V0, 0.6.1 to 0.10: the engine in a process of its own, and a server that waits for its answers.
    failure("core-died", r"Engine process \(pid (?P<pid>\d+)\) died", "engine process {pid} died"),
    complaint("no-heartbeat", r"No heartbeat received from MQLLMEngine", "no answer came from the engine"),
    failure("engine-dead", r"MQLLMEngine is already dead", "the engine is dead", victim=True),
    complaint("engine-iteration", r"Engine iteration timed out", "the engine timed out"),
    complaint("rpc-timeout", r"TimeoutError: RPC call to \w+ timed out", "the workers did not answer in time"),
    complaint("no-broadcast-block", r"No available shared memory broadcast block found", "no broadcast block for 60 s"),
    *LINES,
)

STEPS = (
    Step("server-args"),
    Step("rendezvous-begin", optional=True),
    Step("rendezvous-end", optional=True),
    Step("load-weight-begin"),
    Step("load-weight-end"),
    Step("compile-begin", optional=True),
    Step("compile-end", optional=True),
    Step("kv-cache-allocated"),
    Step("capture-begin", optional=True),
    Step("capture-end", optional=True),
    Step("ready-summary", optional=True),
    Step("http-started"),
    Step("ready"),
)

DULL = (
    rb"(?:\(APIServer[^)\n]{0,20}\) )?(?:INFO \d\d-\d\d \d\d:\d\d:\d\d \[loggers\.py:\d+\]|"
    rb"INFO: {1,8}[^\n]{0,80}HTTP/1\.[01]\" [23])"
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
    log_prefix=re.compile(
        r"(?:(?:INFO|WARNING|ERROR|DEBUG|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d (?:\[[^\]]+|[\w/]+\.py:\d+)\] )"
        r"(?:\[[\w/]+\.py:\d+\] )?"
    ),
    log_lines=LOG_LINES,
    steps=STEPS,
    dull=DULL,
    rank_axis="tp",
    limits=(
        TimeLimit(
            "execute-model",
            "vLLM's engine gives up waiting for its workers and ends",
            frozenset({"warmup", "serving"}),
            variable="VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS",
            default_s=300.0,
            of_ranks=True,
        ),
        *nccl_limits(),
    ),
)
