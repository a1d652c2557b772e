"""Whole starts in the formats that engines and what runs them had over the years: phase, rank, time and verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangdoc.diagnosis import diagnose
from hangdoc.logs.read import Wishes, read
from hangdoc.model.diagnosis import Diagnosis

OLDEST = """server_args=ServerArgs(model_path='m', tp_size=1)
[gpu_id=0] Set cuda device.
[gpu_id=0] Init nccl begin.
[gpu_id=0] Load weight begin. avail mem=23.32 GB
[gpu_id=0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=8.28 GB
[gpu_id=0] Memory pool end. avail mem=4.12 GB
[gpu_id=0] Capture cuda graph begin. This can take up to several minutes.
[gpu_id=0] max_total_num_tokens=32000, max_prefill_tokens=16384, max_running_requests=2047, context_len=8192
INFO:     Started server process [1201]
INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)
[gpu_id=0] Prefill batch. #new-seq: 1, #new-token: 6, #cached-token: 0
INFO:     127.0.0.1:55234 - "POST /generate HTTP/1.1" 200 OK
The server is fired up and ready to roll!
"""

RANKS_0_3 = """[10:00:00] server_args=ServerArgs(model_path='m', tp_size=2)
[10:00:08 TP0] Init nccl begin.
[10:00:08 TP1] Init nccl begin.
[10:00:10 TP0] Load weight begin. avail mem=23.32 GB
[10:00:10 TP1] Load weight begin. avail mem=23.32 GB
[10:00:20 TP1] Load weight end. type=X, dtype=torch.bfloat16, avail mem=8.28 GB
[10:00:21 TP0] Load weight end. type=X, dtype=torch.bfloat16, avail mem=8.28 GB
[10:00:22 TP0] Memory pool end. avail mem=4.12 GB
[10:00:22 TP1] Memory pool end. avail mem=4.12 GB
[10:00:23 TP0] Capture cuda graph begin. This can take up to several minutes.
[10:00:23 TP1] Capture cuda graph begin. This can take up to several minutes.
[10:00:40 TP0] max_total_num_tokens=32000, max_prefill_tokens=16384, max_running_requests=2047, context_len=8192
[10:00:40 TP1] max_total_num_tokens=32000, max_prefill_tokens=16384, max_running_requests=2047, context_len=8192
[10:00:41] INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)
[10:00:42] The server is fired up and ready to roll!
"""

NEWEST = """[2026-11-29 10:00:00] server_args=ServerArgs(model_path='m', tp_size=2, dp_size=1)
[2026-11-29 10:00:08 DP0 PP0 ATTN_CP0 MOE_DP0 TP0 EP0] Init parallel begin.
[2026-11-29 10:00:08 DP0 PP0 ATTN_CP0 MOE_DP0 TP0 EP0] Init parallel ends. elapsed=0.2 s
[2026-11-29 10:00:09 DP0 PP0 ATTN_CP0 MOE_DP0 TP0 EP0] Load weight begin. avail mem=70 GB
[2026-11-29 10:00:20 DP0 PP0 ATTN_CP0 MOE_DP0 TP0 EP0] Load weight end. elapsed=11 s, type=X
[2026-11-29 10:00:20 DP0 PP0 ATTN_CP0 MOE_DP0 TP0 EP0] KV Cache VA upper bound. #tokens: 9, K size: 1 GB
[2026-11-29 10:00:20 DP0 PP0 ATTN_CP0 MOE_DP0 TP0 EP0] Memory pool end. avail mem=7 GB
[2026-11-29 10:00:21 DP0 PP0 ATTN_CP0 MOE_DP0 TP0 EP0] Capture target decode CUDA graph begin. backend=full
"""

WRAPPED = {
    "compose": "sglang-1  | {}",
    "docker": '{{"log":"{}\\n","stream":"stderr","time":"2026-11-29T10:00:00.000000001Z"}}',
    "kubectl": "[pod/llm-0/server] {}",
    "cri": "2026-11-29T10:00:00.000000001Z stderr F {}",
    "journald": "Nov 29 10:00:00 host sglang[55]: {}",
    "ray": "\x1b[36m(WorkerDict pid=77, ip=10.0.0.1)\x1b[0m {}",
    "slurm": " 0: {}",
    "logging": "2026-11-29 10:00:00,527 - __main__ - INFO - {}",
    "colour": "\x1b[32m{}\x1b[0m",
    "glued": "  0%|          | 0/23 [00:00<?, ?it/s]\r{}",
    "glued-without": "  0%|          | 0/23 [00:00<?, ?it/s]{}",
    "windows": "{}\r",
    "broken": "\udcff\udcfe {}",
    "custom": "2026-11-29 10:00:00 INFO 125765 [ DP0 TP0 EP0 scheduler.py:2655] {}",
}


def of(text: str, directory: Path) -> Diagnosis:
    log = directory / "server.log"
    log.write_bytes(text.encode("utf-8", "surrogateescape"))
    return diagnose(read([log], Wishes()), "log")


def cut(text: str, after: str) -> str:
    return text[: text.index("\n", text.rindex(after)) + 1]


@pytest.mark.parametrize("text", [OLDEST, RANKS_0_3], ids=["0.2", "0.3"])
@pytest.mark.parametrize(
    ("after", "phase"),
    [
        ("server_args=", "launch"),
        ("Init nccl begin", "rendezvous"),
        ("Load weight begin", "weight-load"),
        ("Memory pool end", "warmup"),
        ("Capture cuda graph begin", "graph-capture"),
        ("max_total_num_tokens", "warmup"),
        ("Uvicorn running", "warmup"),
        ("ready to roll", "ready"),
    ],
)
def test_old_formats(text: str, after: str, phase: str, tmp_path: Path) -> None:
    """SGLang 0.2 without a time and 0.3 without a date: cut after each step, the phase is that of the rank behind."""
    found = of(cut(text, after), tmp_path)
    assert (found.target.engine, found.verdict) == ("sglang", "healthy" if phase == "ready" else "undetermined")
    assert found.phase == phase


def test_the_newest_prefix(tmp_path: Path) -> None:
    """All the axes that 0.5.23 may print stand in one prefix."""
    found = of(NEWEST, tmp_path)
    assert found.phase == "graph-capture"
    ranks = [one.rank for one in found.processes if one.role == "scheduler"]
    assert {"dp": 0, "pp": 0, "tp": 0, "ep": 0} in ranks


@pytest.mark.parametrize("name", WRAPPED)
def test_wrapped_starts(name: str, tmp_path: Path) -> None:
    """Whatever stands before its lines, a start is read as if nothing did."""
    lines = [WRAPPED[name].format(line) for line in NEWEST.splitlines()]
    found = of("\n".join(lines) + "\n", tmp_path)
    assert found.log is not None
    steps = [step.name for step in found.log.steps]
    assert steps == ["server-args", "rendezvous-begin", "rendezvous-end", "load-weight-begin", "load-weight-end",
                     "kv-cache-allocated", "memory-pool-end", "capture-begin"]  # fmt: skip
    assert (found.target.engine, found.phase) == ("sglang", "graph-capture")
    assert found.log.last_at.startswith("2026-11-29 10:00")


def test_a_rank_in_a_custom_prefix(tmp_path: Path) -> None:
    """Log formats that users set up put the rank beside the file's name."""
    line = "2025-08-28 21:19:34 ERROR 125765 [ DP10 TP10 EP10 scheduler.py:2655] Scheduler hit an exception: x\n"
    found = of("sglang\n" + line, tmp_path)
    assert [one.rank for one in found.culprits] == [{"dp": 10, "tp": 10, "ep": 10}]


VLLM_V0 = """INFO 10-01 16:05:50 api_server.py:526] vLLM API server version 0.6.2
INFO 10-01 16:05:58 llm_engine.py:226] Initializing an LLM engine (v0.6.2) with config: model='m', dtype=x
INFO 10-01 16:06:00 utils.py:992] Found nccl from library libnccl.so.2
INFO 10-01 16:06:00 pynccl.py:63] vLLM is using nccl==2.20.5
(VllmWorkerProcess pid=77) INFO 10-01 16:06:01 model_runner.py:1014] Starting to load model m...
INFO 10-01 16:06:01 model_runner.py:1014] Starting to load model m...
Loading safetensors checkpoint shards: 100% Completed | 4/4 [00:05<00:00,  1.40s/it]
INFO 10-01 16:06:08 model_runner.py:1025] Loading model weights took 14.9888 GB
(VllmWorkerProcess pid=77) INFO 10-01 16:06:08 model_runner.py:1025] Loading model weights took 14.9888 GB
INFO 10-01 16:06:10 distributed_gpu_executor.py:57] # GPU blocks: 27895, # CPU blocks: 2048
INFO 10-01 16:06:14 model_runner.py:1329] Capturing the model for CUDA graphs. This may lead to unexpected consequences
INFO 10-01 16:06:30 model_runner.py:1456] Graph capturing finished in 16 secs.
INFO:     Started server process [70]
INFO:     Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)
INFO:     Application startup complete.
"""


@pytest.mark.parametrize(
    ("after", "phase"),
    [
        ("API server version", "launch"),
        ("is using nccl", "rendezvous"),
        ("Starting to load", "weight-load"),
        ("weights took", "memory-pool"),
        ("GPU blocks", "memory-pool"),
        ("Capturing the model", "graph-capture"),
        ("capturing finished", "graph-capture"),
        ("Started server", "warmup"),
        ("startup complete", "ready"),
    ],
)
def test_the_first_engine_of_vllm(after: str, phase: str, tmp_path: Path) -> None:
    """The lines of vLLM before 0.8, whose prefix is not in brackets."""
    found = of(cut(VLLM_V0, after), tmp_path)
    assert (found.target.engine, found.target.engine_version, found.phase) == ("vllm", "0.6.2", phase)
    assert found.verdict == ("healthy" if phase == "ready" else "undetermined")
