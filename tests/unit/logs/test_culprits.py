"""Who failed, as a log tells it: not a group that goes on, not the victims, not a label that is no rank."""

from __future__ import annotations

from pathlib import Path

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
