"""Texts by which torch, SGLang and vLLM say that somebody ended or stood still, as their sources print them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangdoc.diagnosis import diagnose
from hangdoc.logs.read import Wishes, read
from hangdoc.model.diagnosis import Diagnosis

SGLANG = "[2026-11-29 14:00:00] The server is fired up and ready to roll!\n"
CHILD = "[2026-11-29 14:05:00] Child process unexpectedly failed with {}. pid=302\n"
VLLM = (
    "INFO 11-29 12:00:00 api_server.py:528] vLLM API server version 0.6.3\n"
    "INFO:     Started server process [1]\n"
    "INFO:     Application startup complete.\n"
)
SHUT = "INFO:     Shutting down\nINFO:     Finished server process [1]\n"
DIED = "(EngineCore_0 pid=271) ERROR 11-29 12:24:19 [executor.py:146] Worker proc VllmWorker-1 died unexpectedly\n"
HEAD = "[PG ID 0 PG GUID 0(default_pg) Rank 1] "
BEAT = "Heartbeat monitor timed out! Process will be terminated after dumping debug info. workMetaList_.size()=1"
STUCK = (
    "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring enqueued collectives"
)
ENDED = "Terminating the process after attempting to dump debug info, due to ProcessGroupNCCL watchdog hang."


def of(text: str, directory: Path) -> Diagnosis:
    log = directory / "server.log"
    log.write_text(text)
    return diagnose(read([log], Wishes()), "log")


def served(at: str, tokens: str, running: int) -> str:
    return (
        f"(APIServer pid=1) INFO 11-29 {at} [loggers.py:123] Engine 000: Avg prompt throughput: 0.0 tokens/s, "
        f"Avg generation throughput: {tokens} tokens/s, Running: {running} reqs, Waiting: 0 reqs\n"
    )


@pytest.mark.parametrize("said", [BEAT, STUCK, f"{HEAD}{ENDED}"])
def test_a_watchdog_of_nccl_that_is_stuck_is_a_hang_of_its_rank(said: str, tmp_path: Path) -> None:
    """Each of the three lines alone is a hang that torch measured, of the rank that it names."""
    found = of(f"{SGLANG}[rank1]:[E1129 14:10:00.1 ProcessGroupNCCL.cpp:1685] {HEAD}{said}\n", tmp_path)
    assert found.verdict == "hung"
    assert [next(iter(one.rank.values())) for one in found.culprits] == [1]


def test_an_end_by_an_exception_is_no_stuck_watchdog(tmp_path: Path) -> None:
    """The same last line with another reason says nothing of the watchdog."""
    said = ENDED.replace("ProcessGroupNCCL watchdog hang", "collective timeout or exception")
    assert (
        of(f"{SGLANG}[rank1]:[F1129 14:10:00.1 ProcessGroupNCCL.cpp:1529] {HEAD}{said}\n", tmp_path).verdict != "hung"
    )


@pytest.mark.parametrize(
    ("said", "signal"),
    [
        ("exitcode=9", "signal 9"),
        ("an exit code 9", "signal 9"),
        ("exitcode=-9", "signal 9"),
        ("exitcode=139", "signal 11"),
        ("exitcode=11", "signal 11"),
        ("exitcode=15", "signal 15"),
        ("exitcode=256", "wait status 256"),
    ],
)
def test_what_waitpid_told_sglang(said: str, signal: str, tmp_path: Path) -> None:
    """SGLang prints the raw status of waitpid: the child failed, and is named by its pid."""
    found = of(SGLANG + CHILD.format(said), tmp_path)
    assert (found.verdict, [one.pid for one in found.culprits]) == ("crashed", [302])
    assert signal in found.headline


@pytest.mark.parametrize("said", ["exitcode=0", "exitcode=2", "an exit code 0"])
def test_a_child_that_did_not_fail(said: str, tmp_path: Path) -> None:
    """A child that ended well, or by ctrl-C, is no failure."""
    assert of(SGLANG + CHILD.format(said), tmp_path).verdict != "crashed"


def test_an_engine_without_a_heartbeat(tmp_path: Path) -> None:
    """vLLM 0's server ends in order because its engine did not answer: the engine hung."""
    beat = "ERROR 11-29 12:10:00 client.py:244] TimeoutError('No heartbeat received from MQLLMEngine')\n"
    dead = "CRITICAL 11-29 12:10:00 launcher.py:99] MQLLMEngine is already dead, terminating server process\n"
    gone = "ERROR 11-29 12:10:00 client.py:282] RuntimeError('Engine process (pid 16470) died.')\n"
    assert of(VLLM + beat + dead + SHUT, tmp_path).verdict == "hung"
    assert of(VLLM + beat + dead, tmp_path).verdict == "hung"
    assert of(VLLM + dead, tmp_path).verdict == "crashed"
    found = of(VLLM + gone + dead + SHUT, tmp_path)
    assert (found.verdict, [one.pid for one in found.culprits]) == ("crashed", [16470])


def test_an_iteration_that_timed_out(tmp_path: Path) -> None:
    """vLLM 0's engine measured that an iteration did not end: a hang, not the exception that it then ends with."""
    said = (
        "ERROR 11-29 12:10:00 async_llm_engine.py:866] Engine iteration timed out. This should never happen!\n"
        "ERROR 11-29 12:10:00 async_llm_engine.py:64] Engine background task failed\n"
        "ERROR 11-29 12:10:00 async_llm_engine.py:64] Traceback (most recent call last):\n"
        "ERROR 11-29 12:10:00 async_llm_engine.py:64] TimeoutError\n"
    )
    assert of(VLLM + said, tmp_path).verdict == "hung"


def test_a_look_back_proves_no_survival(tmp_path: Path) -> None:
    """After a worker died, throughput of the time before it and lines without any are no survival; work later is."""
    back, none = served("12:24:24", "7599.4", 46), served("12:25:34", "0.0", 46) + served("12:26:34", "0.0", 46)
    for later in (back, none, back + none):
        found = of(VLLM + DIED + later, tmp_path)
        assert (found.verdict, [next(iter(one.rank.values())) for one in found.culprits]) == ("crashed", [1])
    assert of(VLLM + DIED + served("12:26:34", "512.0", 46), tmp_path).verdict != "crashed"


def test_requests_that_run_without_a_token_are_told(tmp_path: Path) -> None:
    """Minutes at 0.0 tokens/s with requests running are told, as undetermined; not of a server that idles or works."""
    stood = "".join(served(f"12:{minute}:00", "0.0", 3) for minute in range(25, 30))
    found = of(VLLM + served("12:24:00", "55.0", 3) + stood, tmp_path)
    assert found.verdict == "undetermined"
    assert "3 requests ran for 4.0 min or more without one token" in found.headline
    for later in (served("12:30:00", "55.0", 3), served("12:30:00", "0.0", 0)):
        assert "without one token" not in of(VLLM + stood + later, tmp_path).headline


def test_a_line_behind_the_bar_of_another_rank(tmp_path: Path) -> None:
    """A failure that TP1 wrote behind TP0's bar, on the same line, is TP1's, with its reason."""
    bar = "(Worker_TP0 pid=300) Capturing CUDA graphs (decode, FULL):  40%|# | 27/67 [00:03<00:04,  9.50it/s]"
    own = "(Worker_TP1 pid=301) ERROR 11-29 12:24:19 [multiproc_executor.py:671] "
    end = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB."
    found = of(
        f"{VLLM}\r{bar}{own}WorkerProc hit an exception.\n{own}Traceback (most recent call last):\n"
        f'{own}  File "/x/worker.py", line 10, in f\n{own}{end}\n',
        tmp_path,
    )
    assert (found.verdict, [one.rank for one in found.culprits]) == ("crashed", [{"tp": 1}])
    assert "out of GPU memory" in found.headline


def test_the_shell_tells_of_sglangs_own_kill(tmp_path: Path) -> None:
    """The word Killed after a signal from a child is how SGLang ends its tree; without it, it is a cause."""
    peer = "[2026-11-29 14:05:00 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
    peer += '  File "scheduler.py", line 810, in f\nRuntimeError: Connection closed by peer [127.0.0.1]:1811\n\n'
    quit_ = "[2026-11-29 14:05:00] Received sigquit from a child process. It usually means the child failed.\n"
    found = of(f"{SGLANG}{peer}{quit_}Killed\n", tmp_path)
    assert (found.verdict, found.grade) == ("crashed", "likely")
    assert not any("dmesg" in str(one) for one in found.next_steps)
    assert "killed" in of(f"{SGLANG}Killed\n", tmp_path).headline
