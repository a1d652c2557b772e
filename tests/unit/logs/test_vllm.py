"""A start of vLLM as its log tells it: both engine generations, several processes, what goes wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangdoc.diagnosis import diagnose
from hangdoc.engines.vllm import ENGINE
from hangdoc.logs.lines import read_line
from hangdoc.logs.read import Wishes, read
from hangdoc.model.diagnosis import Diagnosis

V1 = Path(__file__).with_name("vllm-0.11.log").read_text()
CORE, SERVER = "(EngineCore_DP0 pid=110)", "(APIServer pid=100)"
BUSY = (
    f"{SERVER} INFO 11-29 12:04:00 [loggers.py:127] Engine 000: Avg prompt throughput: 1.0 tokens/s, Running: 3 reqs\n"
)
IDLE = BUSY.replace("Running: 3", "Running: 0")
DEAD = (
    f"{CORE} ERROR 11-29 12:05:00 [multiproc_executor.py:154] Worker proc VllmWorker-1 died unexpectedly.\n"
    f"{CORE} ERROR 11-29 12:05:00 [core.py:710] EngineCore encountered a fatal error.\n"
    f"{SERVER} ERROR 11-29 12:05:01 [async_llm.py:480] AsyncLLM output_handler failed. EngineDeadError\n"
)
STUCK = f"{CORE} INFO 11-29 12:06:00 [shm_broadcast.py:466] No available shared memory broadcast block found\n"


def of(text: str, tmp_path: Path) -> Diagnosis:
    log = tmp_path / "vllm.log"
    log.write_text(text)
    return diagnose(read([log], Wishes()), "log")


def test_a_whole_start(tmp_path: Path) -> None:
    """Every step is read, with its times, pids and ranks; the engine and its version are recognised."""
    found = of(V1, tmp_path)
    assert (found.verdict, found.phase) == ("healthy", "ready")
    assert (found.target.engine, found.target.engine_version, found.target.pid) == ("vllm", "0.11.0", 100)
    assert found.log is not None
    steps = {step.name: step.took_s for step in found.log.steps}
    assert steps["load-weight-begin"] == 98.0
    assert list(steps)[-1] == "ready"
    assert {one.pid for one in found.processes if "tp" in one.rank} == {120, 121}


@pytest.mark.parametrize(
    ("after", "phase"),
    [
        ("Initializing a V1 LLM", "launch"),
        ("is using nccl==", "rendezvous"),
        ("Starting to load model", "weight-load"),
        ("Using cache directory", "jit-compile"),
        ("GPU KV cache size", "memory-pool"),
        ("Graph capturing finished", "graph-capture"),
        ("Starting vLLM API server", "warmup"),
    ],
)
def test_phases(after: str, phase: str, tmp_path: Path) -> None:
    """Cut after any step, the log names the phase and is never a hang."""
    text = V1[: V1.index("\n", V1.index(after)) + 1]
    found = of(text, tmp_path)
    assert (found.phase, found.verdict) == (phase, "undetermined")


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (V1 + BUSY, "undetermined"),
        (V1 + BUSY + IDLE, "healthy"),
        (V1 + BUSY + DEAD, "crashed"),
        (V1 + BUSY + STUCK * 30, "undetermined"),
        (V1[: V1.index("INFO 11-29 12:03:00")] + "\n", "undetermined"),
    ],
)
def test_verdicts(text: str, verdict: str, tmp_path: Path) -> None:
    """A dead worker is a crash; an engine that complains of no broadcast block for hours may be anything."""
    assert of(text, tmp_path).verdict == verdict


def test_who_died(tmp_path: Path) -> None:
    """The worker that died first is named, not the engine that noticed."""
    assert [one.rank.get("tp") for one in of(V1 + DEAD, tmp_path).culprits] == [1]


@pytest.mark.parametrize("told", ["vLLM server version 0.32.0, serving model m", " █▄█▀ █     █     █  version 0.32.0"])
def test_the_version_of_newer_releases(told: str, tmp_path: Path) -> None:
    """It stands beside the logo, or in a sentence without "API"."""
    found = of(V1.replace("vLLM API server version 0.11.0", told).replace("(v0.11.0)", ""), tmp_path)
    assert (found.target.engine_version, found.verdict) == ("0.32.0", "healthy")


@pytest.mark.parametrize(
    ("line", "name"),
    [
        # 0.16 to 0.32, with and without its logo
        (f"{SERVER} INFO 11-29 12:00:00 [utils.py:279] vLLM server version 0.20.2, serving model m", "server-args"),
        (f"{SERVER} INFO 11-29 12:00:00 [utils.py:279]   █▄█▀ █     █     █     █  version 0.20.2", "server-args"),
        (f"{SERVER} INFO 11-29 12:00:00 [entry.py:140] Starting vLLM server on http://0.0.0.0:8000", "http-listening"),
        # 0.20 to 0.32
        (f"{CORE} INFO 11-29 12:00:00 [monitor.py:53] torch.compile took 9.14 s in total", "compile-end"),
        (
            f"{CORE} INFO 11-29 12:00:00 [backends.py:1167] encoder: Dynamo bytecode transform time: 3 s",
            "compile-begin",
        ),
        (f"{CORE} INFO 11-29 12:00:00 [kv_cache_utils.py:2328] CPU KV cache size: 1,024 tokens", "kv-cache-allocated"),
        ("Capturing eagle prefill CUDA graphs:  40%|####      | 2/5 [00:01<00:01,  2.00it/s]", "capture-bar"),
        (f"{CORE} ERROR 11-29 12:00:00 [multiproc_executor.py:316] WorkerProc hit an exception.", "worker-failed"),
        (
            (
                f"{CORE} ERROR 11-29 12:00:00 [multiproc_executor.py:316] Worker proc VllmWorker-1 died unexpectedly "
                "(exit code: -9), shutting down executor."
            ),
            "worker-died",
        ),
        (
            (
                f"{SERVER} ERROR 11-29 12:00:00 [core_client.py:818] [shutdown] MPClient: engine core exited "
                "unexpectedly; starting cleanup"
            ),
            "core-died",
        ),
        ("TimeoutError: Timed out waiting for engine core processes to start. Waited 600s", "core-start"),
        (
            f"{SERVER} INFO 11-29 12:00:00 [launcher.py:254] [shutdown] API server: shutdown triggered",
            "shutdown",
        ),
    ],
)
def test_wordings_of_newer_releases(line: str, name: str) -> None:
    """What was reworded since 0.12 is the same event."""
    event = read_line(line, ENGINE)
    assert event is not None
    assert event.name == name


def test_a_wait_that_was_cancelled_is_a_victims(tmp_path: Path) -> None:
    """The engine core's exception after a worker's death names nobody: the worker that died is the culprit."""
    cancelled = (
        "Process EngineCore_0:\nTraceback (most recent call last):\n"
        '  File "vllm/v1/executor/multiproc_executor.py", line 158, in wait_for_response_handle_failure\n'
        '    raise RuntimeError("cancelled")\nRuntimeError: cancelled\n'
    )
    found = of(V1 + DEAD.splitlines(keepends=True)[0] + cancelled, tmp_path)
    assert found.verdict == "crashed"
    assert "worker 1 died" in found.headline
    assert [one.rank["tp"] for one in found.culprits] == [1]


def test_workers_that_did_not_answer_in_time(tmp_path: Path) -> None:
    """A step that the engine core waited for in vain is a hang that it ended; likely, as a first one may compile."""
    timed_out = (
        f"{CORE} ERROR 11-29 12:09:00 [core.py:710] EngineCore encountered a fatal error.\n"
        f"{CORE} ERROR 11-29 12:09:00 [core.py:710] Traceback (most recent call last):\n"
        f"{CORE} ERROR 11-29 12:09:00 [core.py:710] TimeoutError: RPC call to execute_model timed out.\n"
    )
    found = of(V1 + BUSY + timed_out, tmp_path)
    assert (found.verdict, found.grade) == ("hung", "likely")
    assert "did not answer in time" in found.headline
