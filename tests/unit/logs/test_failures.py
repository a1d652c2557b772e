"""What a log says of failures: whose it is, which one came first, which were survived, where each stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangdoc.diagnosis import diagnose
from hangdoc.logs.read import Wishes, read
from hangdoc.model.diagnosis import Diagnosis

READY = """[2026-11-29 12:00:00] server_args=ServerArgs(model_path='m', tp_size=2, port=30000)
[2026-11-29 12:00:10 TP0] Init torch distributed begin.
[2026-11-29 12:00:10 TP1] Init torch distributed begin.
[2026-11-29 12:00:20 TP0] Load weight begin. avail mem=70 GB
[2026-11-29 12:00:20 TP1] Load weight begin. avail mem=70 GB
[2026-11-29 12:00:40 TP0] Load weight end. type=X
[2026-11-29 12:00:40 TP1] Load weight end. type=X
[2026-11-29 12:00:50] INFO:     Uvicorn running on http://127.0.0.1:30000
[2026-11-29 12:01:00] The server is fired up and ready to roll!
[2026-11-29 12:02:00 TP0] Prefill batch. #new-seq: 1, #new-token: 6
[2026-11-29 12:02:00 TP0] Decode batch. #running-req: 1, #token: 30
[2026-11-29 12:02:01] INFO:     127.0.0.1:4 - "POST /generate HTTP/1.1" 200 OK
"""
STARTING = "".join(READY.splitlines(keepends=True)[:7])


def hit(rank: str, ending: str, at: str = "12:03:00", chained: str = "") -> str:
    head = f"[2026-11-29 {at} {rank}] Scheduler hit an exception: Traceback (most recent call last):\n"
    frames = (
        '  File "sglang/srt/managers/scheduler.py", line 3025, in run_scheduler_process\n    scheduler.event_loop()\n'
    )
    more = ""
    if chained:
        more = "\nDuring handling of the above exception, another exception occurred:\n\n"
        more += f"Traceback (most recent call last):\n{frames}{chained}\n"
    return f"{head}{frames}{ending}\n{more}\n"


GLOO = "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:4411"
VICTIMS = [
    GLOO,
    "RuntimeError: [gloo/transport/tcp/pair.cc:525] Read error [::1]:1: Connection reset by peer",
    "torch.distributed.DistNetworkError: failed to recv, got 0 bytes: recvValue failed on SocketImpl(fd=8)",
    "BrokenPipeError: [Errno 32] Broken pipe",
    "torch.distributed.DistBackendError: NCCL error in: a.cpp:94, remote process exited or there was a network error",
    "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
]


def of(text: str, directory: Path) -> Diagnosis:
    log = directory / "server.log"
    log.write_text(text)
    return diagnose(read([log], Wishes()), "log")


def blamed(found: Diagnosis) -> list[dict[str, int]]:
    return [one.rank for one in found.culprits]


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("first", ["victim", "culprit"])
def test_the_culprit_is_not_who_prints_first(victim: str, first: str, tmp_path: Path) -> None:
    """A traceback that ends with a peer that is gone is a victim's; the rank with a cause of its own is the culprit."""
    texts = [hit("TP0", victim), hit("TP1", "RuntimeError: CUDA error: device-side assert triggered")]
    if first == "culprit":
        texts.reverse()
    found = of(READY + "".join(texts), tmp_path)
    assert (found.verdict, blamed(found)) == ("crashed", [{"tp": 1}])
    assert "CUDA error" in found.headline


def test_only_victims(tmp_path: Path) -> None:
    """Where only those are in the log who suffered, nobody is blamed."""
    found = of(READY + hit("TP0", GLOO) + hit("TP1", GLOO), tmp_path)
    assert (found.verdict, blamed(found)) == ("crashed", [])
    assert "only who suffered" in found.headline


def test_the_first_of_a_chain_is_the_cause(tmp_path: Path) -> None:
    """An exception that was raised while another one was handled says less than that one."""
    texts = hit("TP0", GLOO, chained="ValueError: x") + hit("TP1", "KeyError: 'x'", chained=GLOO)
    found = of(READY + texts, tmp_path)
    assert blamed(found) == [{"tp": 1}]
    assert "an exception: KeyError" in found.headline


def test_source_in_a_traceback_is_no_failure(tmp_path: Path) -> None:
    """A traceback quotes lines of the source, which name failures that did not happen."""
    text = hit("TP1", '    raise Exception("Capture cuda graph failed: CUDA out of memory")\nKeyError: 3')
    found = of(READY + text, tmp_path)
    assert found.log is not None
    assert found.log.failures == ("line 13: TP1: Scheduler hit an exception: an exception: KeyError",)


def test_one_who_was_killed_prints_nothing(tmp_path: Path) -> None:
    """A rank that a signal ended from outside is the culprit; the exit codes of its victims come of that."""
    text = (
        hit("TP0", GLOO)
        + "Rank 0 scheduler died during initialization (exit code: -3).\n"
        + "Rank 1 scheduler died during initialization (exit code: -9).\n"
    )
    assert blamed(of(STARTING + text, tmp_path)) == [{"tp": 1}]


def test_where_it_stands(tmp_path: Path) -> None:
    """The report names the line as an editor counts, and the next step sends there."""
    found = of(READY.replace("\n", "\r\n") + "3%\r4%\r" + hit("TP1", "KeyError: 1"), tmp_path)
    assert "(line 13)" in found.headline
    assert "sed -n 8,73p" in found.next_steps[0].action
    assert "above" not in found.next_steps[0].action


SURVIVED = [
    "[2026-11-29 12:03:00 TP0] Prefill out of memory. Try to lower your batch size.",
    "[2026-11-29 12:03:00 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 1",
    "[2026-11-29 12:03:00 TP0] Decode out of memory happened. #retracted_reqs: 3, #new_token_ratio: 0.5",
    "[2026-11-29 12:03:00] WARNING: try --mem-fraction-static 0.8 to avoid CUDA out of memory errors",
    "[2026-11-29 12:03:00] Use --cuda-graph-max-bs to avoid OutOfMemoryError in the capture",
    ("ERROR:    Exception in ASGI application\nTraceback (most recent call last):\n  File \"a.py\", line 1, in f\n"
    "    x()\nValueError: The input is too long"),
    ("Exception ignored in: <function f at 0x7f>\nTraceback (most recent call last):\n  File \"a.py\", line 1, in f\n"
    "AttributeError: 'NoneType' object has no attribute 'x'"),
]  # fmt: skip


@pytest.mark.parametrize("text", SURVIVED)
def test_what_is_no_crash(text: str, tmp_path: Path) -> None:
    """What a server says that it survived, or warns of, is no crash, not even as the log's last line."""
    assert of(READY + text + "\n", tmp_path).verdict == "healthy"


@pytest.mark.parametrize(
    "error",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79 GiB",
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nRuntimeError: bad request",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "after",
    [
        '[2026-11-29 12:03:01] INFO:     127.0.0.1:4 - "POST /generate HTTP/1.1" 500 Internal Server Error\n',
        "[2026-11-29 12:03:09 TP0] Decode batch. #running-req: 0, #token: 30\n",
    ],
)
def test_an_error_that_was_survived(error: str, after: str, tmp_path: Path) -> None:
    """An error after which a request was answered, or batches came, ended nothing."""
    found = of(READY + f"[2026-11-29 12:03:00 TP0] odd\n{error}\n" + after, tmp_path)
    assert found.verdict == "healthy"


@pytest.mark.parametrize(
    "line",
    [
        "[2026-11-29 12:03:00 TP0] Decode batch. #running-req: 1, #token: 30",
        "[2026-11-29 12:03:00 TP0] Load weight end. type=X",
        '[2026-11-29 12:03:00] INFO:     127.0.0.1:4 - "POST /generate HTTP/1.1" 200 OK',
        '[2026-11-29 12:03:30] INFO:     127.0.0.1:4 - "POST /generate HTTP/1.1" 500 Internal Server Error',
    ],
)
def test_one_more_line_hides_no_crash(line: str, tmp_path: Path) -> None:
    """What the others still print in the seconds after a crash, and the errors they answer with, hide it not."""
    found = of(READY + hit("TP1", "KeyError: 1") + line + "\n", tmp_path)
    assert (found.verdict, blamed(found)) == ("crashed", [{"tp": 1}])


def test_another_group_goes_on(tmp_path: Path) -> None:
    """Batches of another data-parallel group do not show that this one lives."""
    text = hit("DP1 TP0", "KeyError: 1") + "[2026-11-29 12:09:00 DP0 TP0] Decode batch. #running-req: 1\n"
    assert of(READY + text, tmp_path).verdict == "crashed"
    survived = text.replace("12:09:00 DP0", "12:09:00 DP1")
    assert of(READY + survived, tmp_path).verdict != "crashed"


def test_a_traceback_at_the_very_end(tmp_path: Path) -> None:
    """A traceback that nobody caught, at the end of a server that was ready, is no health."""
    text = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    f()\nKeyError: 1\n'
    found = of(READY + text, tmp_path)
    assert (found.verdict, found.grade) == ("crashed", "likely")
    assert of(READY + text.replace("KeyError: 1\n", ""), tmp_path).verdict != "healthy"


def test_interrupted(tmp_path: Path) -> None:
    """Ctrl-C ends a server in order, although Python prints a traceback."""
    text = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nKeyboardInterrupt\n'
    assert of(READY + text, tmp_path).verdict == "healthy"


@pytest.mark.parametrize(
    "text",
    [
        '^CTraceback (most recent call last):\n  File "a.py", line 1, in <module>\nKeyboardInterrupt\n',
        "[2026-11-29 12:30:00] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n",
    ],
)
def test_a_start_that_somebody_ended(text: str, tmp_path: Path) -> None:
    """Who ends a start that is not ready yet may do so because it hangs: that is no health, and no failure."""
    assert of(STARTING + text, tmp_path).verdict == "undetermined"
    assert of(READY + text, tmp_path).verdict == "healthy"


def test_failures_of_an_end_in_order(tmp_path: Path) -> None:
    """A server that was told to end may fail while it does; what it had survived long before changes nothing."""
    error = "[2026-11-29 11:00:00 TP0] odd\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n"
    told = "[2026-11-29 12:30:00] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n"
    assert (
        of(STARTING + error + READY[len(STARTING) :] + told + hit("TP1", GLOO, "12:30:09"), tmp_path).verdict
        == "healthy"
    )


START_FAILURES = {
    "ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 30000): address already in use":
        "address in use",
    "OSError: [Errno 98] Address already in use": "address in use",
    "ModuleNotFoundError: No module named 'sgl_kernel'": "a module cannot be imported",
    "ImportError: libcudart.so.12: cannot open shared object file": "a module cannot be imported",
    "launch_server.py: error: unrecognized arguments: --tpsize 2": "wrong arguments",
    "usage: launch_server.py [-h]\nlaunch_server.py: error: argument --tp: invalid int value: 'x'": "wrong arguments",
    "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).": "driver",
    "RuntimeError: No CUDA GPUs are available": "driver",
    "OSError: meta/llama is not a local folder and is not a valid model identifier listed on hf": "was not found",
    "OSError: You are trying to access a gated repo.": "not given away",
    "huggingface_hub.errors.HfHubHTTPError: 401 Client Error: Unauthorized for url": "not given away",
    "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url": "not given away",
    "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='huggingface.co')": "a download failed",
    "RuntimeError: No accelerator (CUDA, XPU, HPU) is available.": "driver",
    "AssertionError: tp_size must divide the number of heads": "an assertion failed",
    "OSError: [Errno 28] No space left on device": "no space on the disk",
    "Killed": "killed",
    "./run.sh: line 7:  4711 Killed                  python -m sglang.launch_server": "ended by a signal",
    "      Reason:       OOMKilled": "OOMKilled",
    "Bus error (core dumped)": "shared memory",
    "Segmentation fault (core dumped)": "killed by a signal",
    "Segmentation fault": "killed by a signal",
    "container sglang exited with code 137": "exit code 137",
    "command terminated with exit code 139": "exit code 139",
    "Exit code: -9": "exit code -9",
    "      Exit Code:    137": "exit code 137",
    "subprocess.CalledProcessError: Command 'x' died with <Signals.SIGKILL: 9>.": "ended by a signal",
    "systemd[1]: sglang.service: Main process exited, code=killed, status=9/KILL": "ended by a signal",
    "ERROR:    Application startup failed. Exiting.": "the HTTP server did not start",
    "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.": "not enough GPU memory",
    "safetensors_rust.SafetensorError: Error while deserializing header": "the weights cannot be read",
}  # fmt: skip


@pytest.mark.parametrize(("line", "said"), START_FAILURES.items())
@pytest.mark.parametrize("before", ["", STARTING])
def test_starts_that_failed(line: str, said: str, before: str, tmp_path: Path) -> None:
    """The reasons that starts fail for are found, in a log that has little else, and named."""
    found = of(before + line + "\n", tmp_path)
    assert found.verdict == "crashed"
    assert said in found.headline


@pytest.mark.parametrize(
    "line",
    [
        "Ignore import error when loading sglang.srt.models.x. No module named 'x'",
        '            "OOMKilled": false,',
        "container sglang exited with code 0",
        "command terminated with exit code 143",
        "systemd[1]: sglang.service: Main process exited, code=killed, status=15/TERM",
        "[2026-11-29 12:03:00] see https://x for exit code 5 and other exit codes",
    ],
)
def test_lines_that_look_like_failures(line: str, tmp_path: Path) -> None:
    """Exit codes of an end in order, and lines that only speak of failures, are none."""
    assert of(READY + line + "\n", tmp_path).verdict == "healthy"


WAITED = [
    "RuntimeError: [gloo/transport/tcp/buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete",
    "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.",
    "torch.distributed.DistStoreError: wait timeout after 600000ms, keys: /default_pg/0//cuda//timeout_dump",
]


@pytest.mark.parametrize("ending", WAITED)
@pytest.mark.parametrize("named", [True, False])
def test_a_wait_that_torch_ended(ending: str, named: bool, tmp_path: Path) -> None:
    """A rank that waited in vain until torch's time-out measured a standstill: that is the hang, not the crash."""
    bare = f'Traceback (most recent call last):\n  File "a.py", line 1, in f\n{ending}\n'
    text = hit("TP0", ending) + "[2026-11-29 12:03:01] Received sigquit from a child process.\n" if named else bare
    found = of(STARTING + text, tmp_path)
    assert (found.verdict, found.grade) == ("hung", "confirmed" if named else "likely")
    assert "waited in vain" in found.headline
    crashed = of(STARTING + hit("TP1", "KeyError: 1", "12:01:00") + text, tmp_path)
    assert (crashed.verdict, blamed(crashed)) == ("crashed", [{"tp": 1}])


def test_interleaved_tracebacks(tmp_path: Path) -> None:
    """Ranks whose lines are mixed are told apart by their prefixes."""
    ends = {0: "RuntimeError: Connection closed by peer [10.0.0.1]:1", 1: "KeyError: 1", 2: "BrokenPipeError: x"}
    rows = [f"[rank{rank}]: Traceback (most recent call last):" for rank in ends]
    rows += [f'[rank{rank}]:   File "a.py", line 1, in f' for rank in ends]
    rows += [f"[rank{rank}]: {end}" for rank, end in ends.items()]
    assert blamed(of("torchrun\n" + "\n".join(rows) + "\n", tmp_path)) == [{"rank": 1}]


def test_a_parent_whose_child_is_gone(tmp_path: Path) -> None:
    """The launcher's EOFError only says that a scheduler ended."""
    text = "Rank 1 scheduler is dead. Please check if there are relevant logs.\nExit code: 1\n"
    text += 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nEOFError\n'
    assert blamed(of(STARTING + text, tmp_path)) == [{"tp": 1}]


def test_out_of_memory_in_graph_capture(tmp_path: Path) -> None:
    """That memory ran out is told, not only that the capture failed."""
    found = of(STARTING + hit("TP0", "Exception: Capture cuda graph failed: CUDA out of memory. Tried to"), tmp_path)
    assert "out of GPU memory in graph capture" in found.headline
    assert "mem-fraction-static" in found.next_steps[0].action


@pytest.mark.parametrize("margin", ["    ", "> ", "> > "])
def test_a_pasted_report(margin: str, tmp_path: Path) -> None:
    """Whoever pastes a log may indent or quote it: source is told by the traceback's own margin."""
    text = STARTING + hit("TP1", '    raise Exception("CUDA out of memory. Tried to")\nKeyError: 3')
    pasted = "".join(margin + line for line in text.splitlines(keepends=True))
    found = of("It hangs!\n\n" + pasted, tmp_path)
    assert (found.verdict, blamed(found)) == ("crashed", [{"tp": 1}])
    assert "KeyError" in found.headline
    assert found.phase == "weight-load"
