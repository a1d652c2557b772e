"""Who failed, as a log tells it: not a group that goes on, not the victims, not a label that is no rank."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangdoc.diagnosis import diagnose
from hangdoc.logs.read import Wishes, read
from hangdoc.model.diagnosis import Diagnosis

READY = "[2026-11-29 14:00:00] The server is fired up and ready to roll!\n"
FRAME = '  File "sglang/srt/managers/scheduler.py", line 3100, in run_scheduler_process\n'
CUDA = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n"
ANSWER = '[2026-11-29 14:02:21] INFO:     10.0.0.7:50000 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'


def of(text: str, directory: Path) -> Diagnosis:
    log = directory / "server.log"
    log.write_text(text)
    return diagnose(read([log], Wishes()), "log")


def blamed(found: Diagnosis) -> list[dict[str, int]]:
    return [one.rank for one in found.culprits]


def hit(who: str, rank: str, ending: str) -> str:
    return f"[2026-11-29 14:01:00{rank}] {who} hit an exception: Traceback (most recent call last):\n{FRAME}{ending}"


def batch(rank: str) -> str:
    return f"[2026-11-29 14:02:20{rank}] Decode batch, #running-req: 1, #token: 617, #queue-req: 0\n"


def test_another_group_and_its_answers_prove_nothing(tmp_path: Path) -> None:
    """Batches of DP0 and answers, which may be of any group, do not prove that DP1 survived; batches of DP1 do."""
    dead = READY + hit("Scheduler", " DP1 TP0", CUDA) + batch(" DP0 TP0") + ANSWER
    found = of(dead, tmp_path)
    assert (found.verdict, blamed(found)) == ("crashed", [{"dp": 1, "tp": 0}])
    assert of(dead + batch(" DP1 TP0") + ANSWER, tmp_path).verdict != "crashed"


def test_a_detokenizer_that_died_is_no_survivor_of_batches(tmp_path: Path) -> None:
    """Schedulers compute on without a detokenizer; only an answer shows that it lives."""
    dead = READY + hit("DetokenizerManager", "", "KeyError: 'rid'\n") + batch(" TP0") * 3
    assert of(dead, tmp_path).verdict == "crashed"
    assert of(dead + ANSWER, tmp_path).verdict == "healthy"


def test_systemd_says_that_memory_ended_it(tmp_path: Path) -> None:
    """A unit that lost a process to the kernel's memory killer is not ready."""
    said = "Nov 29 14:10:00 h systemd[1]: sglang.service: "
    for line in ("A process of this unit has been killed by the OOM killer.", "Failed with result 'oom-kill'."):
        assert of(f"Nov 29 14:00:00 h sglang[77]: {READY}{said}{line}\n", tmp_path).verdict == "crashed"


def test_whom_a_barrier_names_inside_a_traceback(tmp_path: Path) -> None:
    """A barrier that failed names the rank that never came; the printer of the traceback is a victim."""
    steps = "".join(f"[2026-11-29 14:00:30 TP{rank}] Load weight begin. avail mem=1 GB\n" for rank in range(4))
    late = "RuntimeError: [Rank 0]: Ranks 3 failed to pass monitoredBarrier in 480000 ms\n"
    assert blamed(of(steps + hit("Scheduler", " TP0", late), tmp_path)) == [{"tp": 3}]


def test_a_fatal_error_is_told_whole(tmp_path: Path) -> None:
    """A segmentation fault is told in both its words."""
    assert "Segmentation fault" in of(READY + "Fatal Python error: Segmentation fault\n", tmp_path).headline


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
GONE = "RuntimeError: [x/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:41234\n"


def labelled(text: str, label: str = "0: ") -> str:
    return "".join(label + line for line in text.splitlines(keepends=True))


def test_the_label_of_a_task_is_no_rank(tmp_path: Path) -> None:
    """All that one node's launch prints has its task's label; whose traceback it is says the line's own rank."""
    text = labelled(hit("Scheduler", " TP1", GONE) + hit("Scheduler", " TP3", OOM))
    found = of(text, tmp_path)
    assert blamed(found) == [{"tp": 3}]
    assert "out of GPU memory" in found.headline


def test_two_nodes_of_one_labelled_log(tmp_path: Path) -> None:
    """The lines of two nodes may stand between each other: the label tells whose they are."""
    first, second = (
        labelled(text, label).splitlines(keepends=True)
        for text, label in ((hit("Scheduler", " TP1", GONE), "0: "), (hit("Scheduler", " TP9", OOM), "1: "))
    )
    mixed = "".join(line for pair in zip(first, second, strict=True) for line in pair)
    assert blamed(of(mixed, tmp_path)) == [{"tp": 9}]


def test_tracebacks_line_by_line_between_each_other(tmp_path: Path) -> None:
    """Whose end is whose cannot be told: nobody is blamed, and nothing is certain."""
    pairs = zip(hit("Scheduler", " TP1", GONE).splitlines(), hit("Scheduler", " TP3", OOM).splitlines(), strict=True)
    mixed = "".join(f"{line}\n" for pair in pairs for line in pair)
    found = of(mixed + "[2026-11-29 14:01:01] Received sigquit from a child process.\n", tmp_path)
    assert (found.verdict, found.grade, blamed(found)) == ("crashed", "likely", [])
    assert "out of GPU memory" in found.headline


def test_who_had_loaded_is_not_blamed_for_a_load_barrier(tmp_path: Path) -> None:
    """Of a load that was not finished by all those are late who have not said that theirs ended."""
    begins = "".join(f"[2026-11-29 14:00:30 TP{rank}] Load weight begin. avail mem=1 GB\n" for rank in range(4))
    ends = "".join(f"[2026-11-29 14:00:40 TP{rank}] Load weight end. type=X\n" for rank in (0, 1, 3))
    text = "ValueError: TP rank 0 could finish the model loading, but there are other ranks that didn't finish\n"
    found = of(begins + ends + hit("Scheduler", " TP0", text), tmp_path)
    assert (found.verdict, blamed(found)) == ("crashed", [{"tp": 2}])


def test_an_exit_code_belongs_to_the_rank_named_before_it(tmp_path: Path) -> None:
    """SGLang prints which scheduler died and its exit code as two lines."""
    begins = "".join(f"[2026-11-29 14:00:30 TP{rank}] Load weight begin. avail mem=1 GB\n" for rank in range(4))
    dead = "Rank 3 scheduler is dead. Please check if there are relevant logs.\nExit code: -9\n"
    found = of(begins + dead, tmp_path)
    assert (found.verdict, blamed(found)) == ("crashed", [{"tp": 3}])
    assert "-9" in found.headline
    assert "dmesg" in found.next_steps[0].action


def test_a_helper_thread_that_ended_is_no_end(tmp_path: Path) -> None:
    """A process lives on without one of its threads; followed by a failure of a process it is a crash."""
    thread = (
        'Exception in thread Thread-5 (monitor):\nTraceback (most recent call last):\n  File "a.py", line 3, in f\n'
    )
    text = READY + ANSWER + thread + "requests.exceptions.ConnectionError: boom\n"
    assert of(text, tmp_path).verdict == "undetermined"
    assert of(text + "[2026-11-29 14:03:00] Received sigquit from a child process.\n", tmp_path).verdict == "crashed"


CANCELLED = "slurmstepd: error: *** JOB 123 ON node1 CANCELLED AT 2026-11-29T15:00:00 DUE TO TIME LIMIT ***\n"


def test_a_job_that_was_cancelled(tmp_path: Path) -> None:
    """Whoever cancels a job may do so because it hangs: that is no crash, nor does it say that all was well."""
    begin = "[2026-11-29 14:00:30 TP0] Load weight begin. avail mem=1 GB\n"
    for text, place in ((begin, "in weight-load"), (READY, "after it was ready")):
        found = of(text + CANCELLED + "srun: error: node1: task 0: Exited with exit code 15\n", tmp_path)
        assert found.verdict == "undetermined"
        assert f"ended from outside {place}" in found.headline
    assert of(begin + hit("Scheduler", " TP0", OOM) + CANCELLED, tmp_path).verdict == "crashed"


def test_a_container_that_exited_with_code_0(tmp_path: Path) -> None:
    """A server that left without an error and was not told to is not ready; one that was told to is in order."""
    end = "sglang-1 exited with code 0\n"
    found = of(f"sglang-1  | {READY}{end}", tmp_path)
    assert found.verdict == "undetermined"
    assert "It ended after it was ready" in found.headline
    told = f"sglang-1  | {READY}sglang-1  | [2026-11-29 14:05:00] INFO:     Shutting down\n{end}"
    assert of(told, tmp_path).verdict == "healthy"
    assert of(f"download-1 exited with code 0\nsglang-1  | {READY}", tmp_path).verdict == "healthy"


def test_what_ras_says_as_text(tmp_path: Path) -> None:
    """A process that RAS does not reach is named, and how far the ranks are."""
    head = "NCCL version 2.28.3 compiled with CUDA 13.0\n\nErrors\n======\n\n"
    dead = "DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n"
    dead += "  Process 3487984 on node 172.16.64.213 managing GPU 5\n"
    assert "process 3487984 is missing" in of(head + dead, tmp_path).headline
    few = "  6 ranks have launched up to operation 6650\n  2 ranks have launched up to operation 6649\n"
    assert "2 ranks have launched up to operation 6649" in of(head + few, tmp_path).headline


KILLED = "[2026-11-29 14:03:00] Subprocess scheduler_2 (pid=2402) crashed with exit code {}. Triggering SIGQUIT\n"


def test_a_process_that_is_named_by_its_pid_only(tmp_path: Path) -> None:
    """A pid is a name: of a process whose rank no line tells, too."""
    found = of(READY + KILLED.format(-9), tmp_path)
    assert [(one.pid, one.rank) for one in found.culprits] == [(2402, {})]
    out = "[ 812.1] Out of memory: Killed process 991 (python3) total-vm:1kB\n"
    assert of(READY + out, tmp_path).culprits == ()  # the kernel's pids are those of the host


def test_whose_segmentation_fault_it_is(tmp_path: Path) -> None:
    """What a dying process prints names nobody; who saw one process end by a signal does, and of two says nothing."""
    fault = "Fatal Python error: Segmentation fault\n\nCurrent thread 0x7f (most recent call first):\n"
    found = of(READY + fault + KILLED.format(-11), tmp_path)
    assert "Segmentation fault" in found.headline
    assert [one.pid for one in found.culprits] == [2402]
    two = KILLED.format(-11) + KILLED.format(-9).replace("2402", "2403")
    assert of(READY + fault + two, tmp_path).culprits == ()


def test_the_reason_that_nccl_gives_last(tmp_path: Path) -> None:
    """NCCL's own words stand below the exception: without room in /dev/shm the advice is about that."""
    ending = (
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:317, unhandled system error\n"
        "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.\n"
        "Last error:\nError while creating shared memory segment /dev/shm/nccl-AbC (size 9): No space left\n"
    )
    found = of(hit("Scheduler", " TP1", ending), tmp_path)
    assert "no space in shared memory" in found.headline
    assert "df -h /dev/shm" in found.next_steps[0].action
    assert blamed(found) == [{"tp": 1}]


@pytest.mark.parametrize(
    ("nodes", "last", "playbook"),
    [
        pytest.param(1, "", "peer-to-peer-broken", id="one node"),
        pytest.param(2, "", "cross-node-transport", id="two nodes"),
        pytest.param(1, "[2026-11-29 14:00:20 TP0] Load weight begin. avail mem=1 GB\n", "hung-in-silence", id="later"),
    ],
)
def test_a_log_that_ends_where_nccl_begins(nodes: int, last: str, playbook: str, tmp_path: Path) -> None:
    """The usual suspect comes first where a log of several ranks ends after NCCL's first line, and only there."""
    begin = f"[2026-11-29 14:00:00] server_args=ServerArgs(tp_size=2, nnodes={nodes}, node_rank=0, port=30000)\n"
    ranks = "".join(
        f"[2026-11-29 14:00:1{at} TP{rank}] {text}\n"
        for at, text in enumerate(("Init torch distributed begin.", "sglang is using nccl==2.27.3"))
        for rank in (0, 1)
    )
    found = of(begin + ranks + last, tmp_path)
    assert found.verdict == "undetermined"
    assert found.next_steps[0].playbook == playbook


@pytest.mark.parametrize(("nodes", "playbook"), [(1, "hung-in-silence"), (2, "blocked-in-rendezvous")])
def test_a_log_that_ends_before_the_nodes_met(nodes: int, playbook: str, tmp_path: Path) -> None:
    """Of several nodes that have not met the way to each other is looked at first."""
    begin = f"[2026-11-29 14:00:00] server_args=ServerArgs(tp_size=4, nnodes={nodes}, node_rank=0, port=30000)\n"
    ranks = "".join(f"[2026-11-29 14:00:10 TP{rank}] Init torch distributed begin.\n" for rank in (0, 1))
    assert of(begin + ranks, tmp_path).next_steps[0].playbook == playbook


@pytest.mark.parametrize(("said", "absent"), [((0, 1, 3), "rank 2"), ((0, 1, 2, 3), None), ((0,), None)])
def test_who_has_not_said_that_gloo_connected_it(said: tuple[int, ...], absent: str | None, tmp_path: Path) -> None:
    """The ranks that are missing from a line which all should print are named, where most have printed it."""
    begin = "".join(f"[2026-11-29 14:00:10 TP{rank}] Init torch distributed begin.\n" for rank in range(4))
    line = "[Gloo] Rank {} is connected to 3 peer ranks. Expected number of connected peer ranks is : 3\n"
    found = of(begin + "".join(line.format(rank) for rank in said), tmp_path)
    assert found.verdict == "undetermined"
    assert ("has not said that Gloo connected it" in found.headline) is (absent is not None)
    assert absent is None or absent in found.headline


def test_a_warm_up_that_a_proxy_answered(tmp_path: Path) -> None:
    """The reason below a warm-up that failed is told, and what to look at is the proxy."""
    text = (
        "[2026-11-29 14:01:00] Initialization failed. warmup error: Traceback (most recent call last):\n"
        '  File "http_server.py", line 812, in _wait_and_warmup\n'
        "AssertionError: res=<Response [502]>, res.text=''\n\nKilled\n"
    )
    found = of(text, tmp_path)
    assert (found.verdict, found.phase) == ("crashed", "warmup")
    assert "502" in found.headline
    assert "NO_PROXY" in found.next_steps[0].action


def test_slurm_out_of_memory(tmp_path: Path) -> None:
    """A job step that was ended for its memory is told as that."""
    text = (
        READY + "slurmstepd: error: Detected 1 oom_kill event in StepId=1234.0. Some of the step tasks have been OOM\n"
    )
    assert "killed for its memory" in of(text, tmp_path).headline
