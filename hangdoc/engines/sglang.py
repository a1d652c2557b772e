"""SGLang, 0.3.0 to 0.5.23: texts read from the released wheels, titles and frames from running launches."""

from __future__ import annotations

import re

from hangdoc.engines._failures import error, failure
from hangdoc.engines._torch import LINES, complaint, nccl_limits
from hangdoc.model.engine import Activity, Engine, FrameRule, LogLine, Option, Step, TimeLimit, Title
from hangdoc.model.log import LogEventKind, Phase

_RANK = r"(?:_DP(?P<dp>\d+))?(?:_PP(?P<pp>\d+))?(?:_ATTN_CP\d+)?(?:_MOE_DP\d+)?(?:_TP(?P<tp>\d+))?(?:_EP(?P<ep>\d+))?"

TITLES = (
    Title(re.compile(rf"^sglang::scheduler(?:_None)?{_RANK}$"), "scheduler"),
    Title(re.compile(r"^sglang::scheduler"), "scheduler"),
    Title(re.compile(r"^sglang::detokenizer(?!_router)"), "detokenizer"),
    Title(re.compile(r"^sglang::detokenizer_router"), "router"),
    # All that is left of a zombie's title: the kernel's short name.
    Title(re.compile(r"^sglang::schedul$"), "scheduler"),
    Title(re.compile(r"^sglang::detoken$"), "detokenizer"),
    Title(re.compile(r"^sglang::data_parallel_controller"), "router"),
    Title(re.compile(r"^sglang::tokenizer_worker"), "tokenizer"),
    Title(re.compile(r"^sglang::http_server"), "tokenizer"),
)

OPTIONS = (
    Option("tp_size", ("--tensor-parallel-size", "--tp-size", "--tp"), "1"),
    Option("pp_size", ("--pipeline-parallel-size", "--pp-size", "--pp"), "1"),
    Option("dp_size", ("--data-parallel-size", "--dp-size", "--dp"), "1"),
    Option("nnodes", ("--nnodes",), "1"),
    Option("node_rank", ("--node-rank",), "0"),
    Option("port", ("--port",), "30000"),
    Option("skip_server_warmup", ("--skip-server-warmup",), "", is_switch=True),
    Option("enable_metrics", ("--enable-metrics",), "", is_switch=True),
    Option("watchdog_timeout", ("--watchdog-timeout",), "300"),
    Option("soft_watchdog_timeout", ("--soft-watchdog-timeout",)),
    Option("dist_timeout", ("--dist-timeout",)),
    Option("sleep_on_idle", ("--sleep-on-idle",), "", is_switch=True),
)


def _line(
    name: str,
    pattern: str,
    text: str,
    phase: Phase = "unknown",
    kind: LogEventKind = "milestone",
    since: str = "",
    until: str = "",
) -> LogLine:
    return LogLine(name, kind, re.compile(pattern), text, phase, since, until)


# SIGCHLD's handler, 0.4.4 on, prints what waitpid returned: the signal, 128 more with a core, or exit code * 256.
CHILDREN = (
    *(
        failure(
            "child-signalled",
            rf"Child process unexpectedly failed with (?:an exit code |exitcode=)(?:-?{number}|{number + 128})\. "
            r"pid=(?P<pid>\d+)",
            f"child {{pid}} was ended by signal {number}",
        )
        for number in (4, 5, 6, 7, 8, 9, 11, 15)
    ),
    error(
        "child-exited",
        r"Child process unexpectedly failed with (?:an exit code |exitcode=)(?P<status>(?!0\b|2\b|130\b)-?\d+)\. "
        r"pid=(?P<pid>\d+)",
        "child {pid} failed: wait status {status}",
    ),
)

# Versions: first and last released wheel that prints a wording; nothing where all do.
LOG_LINES = (
    _line("server-args", r"^server_args=", "server_args", "launch"),
    _line("rendezvous-begin", r"^Init nccl begin", "Init nccl begin", "rendezvous", until="0.3.5"),
    _line(
        "rendezvous-begin",
        r"^Init torch distributed begin",
        "Init torch distributed begin",
        "rendezvous",
        since="0.3.6",
        until="0.5.20",
    ),
    _line("rendezvous-begin", r"^Init parallel begin", "Init parallel begin", "rendezvous", since="0.5.21"),
    _line("nccl-version", r"is using nccl==(?P<version>[\d.]+)", "is using NCCL", "rendezvous"),
    _line("connecting", r"^Connecting to tcp://", "Connecting to a peer over zmq", "rendezvous"),
    _line(
        "group-on-several-nodes",
        r"^Custom ?[Aa]ll-?[Rr]educe is disabled because this process group spans across nodes",
        "the process group is on several nodes",
        "rendezvous",
    ),
    _line("custom-all-reduce", r"Custom ?[Aa]llreduce (?:is disabled|failed)", "no custom all_reduce", "rendezvous"),
    _line(
        "rendezvous-end",
        r"^Init torch distributed ends",
        "Init torch distributed ends",
        "weight-load",
        since="0.4.3",
        until="0.5.20",
    ),
    _line("rendezvous-end", r"^Init parallel ends", "Init parallel ends", "weight-load", since="0.5.21"),
    _line("weights-format", r"^Using model weights format", "Using model weights format", "weight-load"),
    _line("load-weight-begin", r"Load weight begin", "Load weight begin", "weight-load"),
    _line(
        "weights-committed",
        r"Load weight end\. Committed real weights",
        "Load weight end after graph capture",
        "warmup",
        since="0.5.20",
    ),
    _line("load-weight-end", r"Load weight end", "Load weight end", "weight-load"),
    _line(
        "kv-cache-allocated",
        r"^KV Cache (?:is allocated|VA upper bound)",
        "KV Cache is allocated",
        "memory-pool",
        since="0.4.3",
    ),
    _line("kv-cache-dtype", r"^Using KV cache dtype", "Using KV cache dtype", "memory-pool", since="0.5.8"),
    _line("memory-pool-end", r"Memory pool end", "Memory pool end", "warmup"),
    _line(
        "capture-begin",
        r"^Capture (?:draft )?(?:extend )?(?:cuda|cpu|npu) graph begin",
        "Capture cuda graph begin",
        "graph-capture",
        until="0.5.13",
    ),
    _line(
        "capture-begin",
        r"^Capture (?:target|draft) \w+(?: \w+)? CUDA graph begin|^Capture piecewise CUDA graph begin",
        "Capture CUDA graph begin",
        "graph-capture",
        since="0.5.13",
    ),
    _line("capture-end", r"^Capture (?:.* )?(?:cuda|CUDA|cpu|npu) graph end", "Capture CUDA graph end", "warmup"),
    _line(
        "graph-addresses",
        r"^Registering (?P<count>\d+) cuda graph addresses",
        "graph addresses: {count}",
        "graph-capture",
    ),
    _line("capture-sizes", r"^Capture (?:cuda|cpu|npu) graph bs ", "Capture cuda graph bs", "graph-capture"),
    _line(
        "deep-gemm-compile",
        r"DeepGEMM JIT (?:Pre-)?Compil|DeepGEMM warmup start",
        "DeepGEMM JIT compile",
        "jit-compile",
        since="0.4.6",
    ),
    _line("flashinfer-autotune", r"^Running FlashInfer autotune", "FlashInfer autotune", "jit-compile", since="0.5.8"),
    _line("flashinfer-autotuned", r"^FlashInfer autotune completed", "FlashInfer autotune completed", "warmup"),
    _line("ready-summary", r"^max_total_num_tokens=", "max_total_num_tokens", "warmup"),
    _line("http-started", r"^INFO:\s+Started server process \[(?P<pid>\d+)", "Started server process", "warmup"),
    _line("http-listening", r"^INFO:\s+Uvicorn running on", "Uvicorn running", "warmup"),
    _line("pd-warmup", r"^Start of (?:prefill|decode|pd disaggregation) warmup", "Start of the warm-up", "warmup"),
    _line("ready", r"^The server is fired up and ready to roll", "ready to roll", "ready"),
    _line("prefill-batch", r"^Prefill batch[.,]? ?", "Prefill batch", kind="batch"),
    _line(
        "decode-batch",
        r"^Decode batch[.,]?(?: \[\d+\],)? ?(?:#running-req: (?P<running>\d+))?",
        "Decode batch",
        kind="batch",
    ),
    _line("generate-done", r'"POST /(?:generate|v1/\S+) HTTP/1.1" 200', "POST 200", kind="batch"),
    _line("request-failed", r'"POST /(?:generate|v1/\S+) HTTP/1.1" (?P<status>[45]\d\d)', "POST failed", kind="batch"),
    _line("health-answered", r'"GET /health(?:_generate)? HTTP/1.1" 200', "GET health 200", kind="batch"),
    _line(
        "health-refused", r'"GET /health(?:_generate)? HTTP/1.1" (?P<status>5\d\d)', "GET health failed", kind="batch"
    ),
    _line(
        "deep-gemm-warmup",
        r"DeepGEMM warmup:\s+(?P<percent>\d+)%",
        "DeepGEMM warmup {percent} %",
        "jit-compile",
        "progress",
    ),
    _line(
        "capture-bar",
        r"Capturing batches(?: \([^)]*\))?:\s+(?P<percent>\d+)%",
        "capturing graphs {percent} %",
        "graph-capture",
        "progress",
        since="0.4.10",
    ),
    _line(
        "shutdown",
        r"Gracefully exiting(?:\.\.\. Remaining number of requests (?P<open>\d+))?|^INFO:\s+Shutting down|"
        r"^SIGTERM received|exited with code (?:130|143)$",
        "Shutting down",
        "shutdown",
    ),
    failure(
        "exception",
        r"(?P<who>Scheduler|TpModelWorkerClient|DetokenizerManager|TokenizerManager|DataParallelController|"
        r"MultiTokenizerRouter|GrpcRequestManager) hit an exception:",
        "{who} hit an exception",
    ),
    failure(
        "capture-failed-by-peer",
        r"Capture (?:cuda|CUDA) graph failed: .*Connection closed by peer",
        "graph capture failed: a peer closed the connection",
        "graph-capture",
        victim=True,
    ),
    failure(
        "out-of-memory",
        r"Capture (?:cuda|CUDA) graph failed: CUDA out of memory",
        "out of GPU memory in graph capture",
        "graph-capture",
    ),
    failure("capture-failed", r"Capture (?:cuda|CUDA) graph failed", "Capture cuda graph failed", "graph-capture"),
    failure("child-failed", r"Received sigquit from a child process", "Received sigquit from a child", victim=True),
    failure("sigquit", r"SIGQUIT received\. signum=", "SIGQUIT received: one child failed", victim=True, since="0.5.5"),
    failure(
        "scheduler-dead",
        r"Rank (?P<rank>\d+) scheduler (?:is dead|died during initialization)(?: \(exit code: (?P<code>-?\d+)\))?",
        "rank {rank} scheduler died",
    ),
    failure(
        "subprocess-crashed",
        r"Subprocess \S+ \(pid=(?P<pid>\d+)\) crashed with exit code (?P<code>-?\d+)",
        "subprocess {pid} crashed with exit code {code}",
        since="0.5.10",
    ),
    failure(
        "child-ended",
        r"Scheduler or DataParallelController (?P<pid>\d+) terminated with (?P<code>-?\d+)",
        "child {pid} ended with {code}",
    ),
    *CHILDREN,
    failure("warmup-failed", r"Initialization failed\. warmup error", "warm-up failed", "warmup"),
    failure(
        "warmup-refused",
        r"AssertionError: res=<Response \[(?P<status>[45]\d\d)\]>",
        "its own request was answered with {status}",
        "warmup",
    ),
    failure(
        "load-barrier",
        r"(?:TP )?rank (?P<printer>\d+) could finish the model loading, but there are other ranks",
        "rank {printer} has loaded, others have not finished",
        "weight-load",
        victim=True,
        since="0.4.4",
    ),
    complaint(
        "watchdog-soft", r"[Ww]atchdog timeout \(self\.watchdog_timeout=[\d.]+, self\.soft=True", "soft watchdog"
    ),
    complaint("watchdog", r"[Ww]atchdog timeout(?: \(self\.watchdog_timeout=(?P<limit>\d+)|$)", "watchdog timeout"),
    # What the watchdog prints of a scheduler, 0.3.6 to 0.5.23: from 0.5.8 in a message of several lines.
    complaint("debug-info", r"^Scheduler debug info:$", "debug lines of its scheduler follow"),
    complaint(
        "held-batch",
        r"\bcur_batch(?:_for_debug)?\.batch_size\(\)=(?P<batch>\d+)"
        r"(?:, self\.cur_batch\.reqs=\[Req\(rid=(?P<request>[\w-]{1,200}),)?",
        "its batch has {batch} requests",
    ),
    complaint(
        "held-request",
        r"\bcur_batch(?:_for_debug)?\.reqs=\[Req\(rid=(?P<request>[\w-]{1,200}),",
        "its batch has a first request",
    ),
    complaint("no-answer", r"[Hh]ealth check failed", "health check failed"),
    *LINES,
)

# In the order of a good start; what a version or a setting leaves out is optional.
STEPS = (
    Step("server-args"),
    Step("rendezvous-begin", every_rank=True),
    Step("rendezvous-end", every_rank=True, dated=True),  # from 0.4.3 on
    Step("load-weight-begin", every_rank=True),
    Step("load-weight-end", every_rank=True),
    Step("kv-cache-allocated", every_rank=True, dated=True),  # from 0.4.3 on
    Step("memory-pool-end", every_rank=True),
    Step("capture-begin", every_rank=True, optional=True),
    Step("capture-end", every_rank=True, optional=True),
    Step("ready-summary"),
    Step("http-started"),
    Step("http-listening"),
    Step("ready"),
)

DULL = rb"\[[^\]\n]{0,80}\] (?:Decode batch|Prefill batch|INFO: {1,8}[^\n]{0,80}HTTP/1\.[01]\" [23])"


def _frame(activity: Activity, function: str, file: str = "", phase: Phase = "unknown") -> FrameRule:
    return FrameRule(activity, re.compile(function), file, phase)


# Innermost frames are tried first, and within one frame the rules in this order.
FRAMES = (
    _frame("idle-poll", r"maybe_sleep(_on_idle)?|on_idle|self_check_during_idle", phase="ready"),
    _frame("parent-wait", r"_wait_for_scheduler_ready|_wait_for_model_weights|wait_for_ready"),
    _frame("parent-wait", r"event_loop", "managers/detokenizer_manager.py"),
    _frame("parent-wait", r"event_loop", "managers/data_parallel_controller.py"),
    _frame("parent-wait", r"event_loop", "managers/multi_tokenizer_mixin.py"),
    _frame("parent-wait", r"launch_phase_sigquit_handler|_setup_and_run_http_server|run_until_complete"),
    _frame("warmup-request", r"_wait_and_warmup|_execute_server_warmup", phase="warmup"),
    _frame("helper", r"_watchdog_thread|watchdog_thread|run_watchdog|_watchdog_once", phase="unknown"),
    _frame(
        "rendezvous",
        r"init_torch_distributed|init_distributed_environment|initialize_model_parallel"
        r"|init_parallel\w*|initialize_dp_attention",
        phase="rendezvous",
    ),
    _frame(
        "load",
        r"load_weights\w*|_?get_(all_)?weights\w*|\w*weights_iterator|load_model\w*|_initialize_model"
        r"|barrier_after_load\w*",
        phase="weight-load",
    ),
    _frame(
        "memory-pool",
        r"init_memory_pool|_init_pools|profile_max_num_token|alloc_memory_pool|init_kv_cache\w*",
        phase="memory-pool",
    ),
    _frame(
        "compile",
        r"compile_deep_gemm\w*|_maybe_compile_deep_gemm\w*|flashinfer_autotune|_flashinfer_autotune",
        phase="jit-compile",
    ),
    _frame(
        "graph-capture",
        r"capture|capture_one\w*|init_cuda_graphs|init_device_graphs",
        "model_runner.py",
        phase="graph-capture",
    ),
    *(
        _frame("graph-capture", r"capture\w*|__init__", f"{runner}_graph_runner.py", phase="graph-capture")
        for runner in ("cuda", "base_cuda", "decode_cuda", "prefill_cuda", "piecewise_cuda", "cpu", "npu")
    ),
    _frame(
        "forward", r"run_batch|process_batch_result\w*|forward_batch_generation|forward_\w+|forward", phase="serving"
    ),
    _frame("event-loop", r"event_loop_\w+", phase="ready"),
)

LIMITS = (
    # Set back by each finished batch, runs only while one is under way, looks every half of its time.
    TimeLimit(
        "watchdog",
        "SGLang's watchdog ends the server",
        frozenset({"warmup", "serving"}),
        option="watchdog_timeout",
        default_s=300.0,
        latest_ratio=1.5,
    ),
    # The same clock, off by default; it tells and ends nothing, but what it prints is evidence of its own.
    TimeLimit(
        "soft-watchdog",
        "SGLang's soft watchdog prints its stacks, and the server goes on,",
        frozenset({"warmup", "serving"}),
        option="soft_watchdog_timeout",
        latest_ratio=1.5,
    ),
    TimeLimit(
        "warmup-request",
        "SGLang gives its warm-up request up and ends",
        frozenset({"warmup"}),
        variable="SGLANG_WARMUP_TIMEOUT",
        default_s=600.0,
    ),
    # 300 s in 0.4.6, 480 s in 0.5.23.
    TimeLimit(
        "load-barrier",
        "the barrier after the load gives up, and the server ends",
        frozenset({"weight-load"}),
        default_s=300.0,
        latest_ratio=1.6,
        of_ranks=True,
    ),
    *nccl_limits("dist_timeout"),
)

ENGINE = Engine(
    name="sglang",
    launchers=(
        re.compile(r"(?:^|\s)-m\s+sglang\.launch_server(?:\s|$)"),
        re.compile(r"(?:^|[\s/])sglang\s+serve(?:\s|$)"),
        re.compile(r"(?:^|[\s/])sglang/launch_server\.py(?:\s|$)"),
    ),
    distribution="sglang",
    titles=TITLES,
    options=OPTIONS,
    log_prefix=re.compile(
        r"\[(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d"
        r"(?: DP(?P<dp>\d{1,6}))?(?: PP(?P<pp>\d{1,6}))?(?: ATTN_CP\d{1,6})?(?: MOE_DP\d{1,6})?(?: TP(?P<tp>\d{1,6}))?"
        r"(?: EP(?P<ep>\d{1,6}))?(?: PP\d{1,6})?\] "
    ),
    log_lines=LOG_LINES,
    steps=STEPS,
    dull=DULL,
    rank_axis="tp",
    frames=FRAMES,
    limits=LIMITS,
)
