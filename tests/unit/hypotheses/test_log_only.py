"""Hypotheses that rest on a log alone: watchdogs, failures and their victims, silence, bars, readiness."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangdoc.diagnosis import diagnose
from hangdoc.logs.moment import moment
from hangdoc.logs.read import Wishes, read
from hangdoc.model.diagnosis import Diagnosis

DAY = "2026-11-29"
BEGIN = f"[{DAY} 12:00:00] server_args=ServerArgs(tp_size=2)\n"
LOADING = BEGIN + "".join(f"[{DAY} 12:00:1{rank} TP{rank}] Load weight begin. avail mem=1 GB\n" for rank in (0, 1))
READY = f"[{DAY} 12:01:00] The server is fired up and ready to roll!\n"
BATCH = f"[{DAY} 12:02:00 TP0] Decode batch, #running-req: 3, #token: 5\n"
LATER = BATCH.replace("12:02", "12:08")
DONE = f'[{DAY} 12:02:01] INFO:     127.0.0.1:1 - "POST /generate HTTP/1.1" 200 OK\n'
WATCHDOG = f"[{DAY} 12:07:00 TP1] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)\n"
SOFT = WATCHDOG.replace("soft=False", "soft=True")
SIGQUIT = f"[{DAY} 12:07:05] SIGQUIT received. signum=None, frame=None. It usually means one child failed.\n"
EXCEPTION = f"[{DAY} 12:05:00 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
SIGTERM = f"[{DAY} 12:05:00] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n"
BAR = "Loading safetensors checkpoint shards:  40% Completed | 4/10 [00:40<01:00, 10.0s/it]\r"
BAR_AT_0 = "Loading safetensors checkpoint shards:   0% Completed | 0/10 [00:00<?, ?it/s]\r"


def of(text: str, tmp_path: Path, now: str | None = None) -> Diagnosis:
    log = tmp_path / "server.log"
    log.write_text(text)
    return diagnose(read([log], Wishes(now=None if now is None else moment(f"{DAY} {now}"))), "log")


@pytest.mark.parametrize(
    ("text", "verdict", "grade", "leader"),
    [
        pytest.param(READY + BATCH + WATCHDOG, "hung", "likely", "HD901", id="a watchdog"),
        pytest.param(READY + BATCH + WATCHDOG + SIGQUIT, "hung", "confirmed", "HD901", id="ended after a watchdog"),
        pytest.param(READY + BATCH + SOFT + SIGQUIT, "hung", "likely", "HD901", id="a soft watchdog"),
        pytest.param(LOADING + SOFT, "undetermined", "undetermined", "", id="a soft watchdog in a start"),
        pytest.param(READY + SOFT + LATER, "undetermined", "undetermined", "", id="went on after a soft watchdog"),
        pytest.param(LOADING + EXCEPTION, "crashed", "likely", "HD410", id="an exception"),
        pytest.param(LOADING + EXCEPTION + SIGQUIT, "crashed", "confirmed", "HD410", id="and a victim"),
        pytest.param(READY + EXCEPTION + WATCHDOG, "crashed", "likely", "HD410", id="failed before the watchdog"),
        pytest.param(READY + SIGTERM + "Killed\n", "healthy", "likely", "HD520", id="told to end"),
        pytest.param(READY, "healthy", "likely", "HD520", id="ready"),
        pytest.param(READY + BATCH + DONE, "healthy", "likely", "HD520", id="answered"),
        pytest.param(READY + BATCH, "undetermined", "undetermined", "", id="a request is open"),
        pytest.param(LOADING, "undetermined", "undetermined", "", id="a start, cut off"),
        pytest.param(LOADING + BAR, "undetermined", "undetermined", "", id="a bar, with no time"),
        pytest.param(LOADING + BAR_AT_0, "undetermined", "undetermined", "", id="a bar without a pace"),
        pytest.param(LOADING + BAR + EXCEPTION, "crashed", "likely", "HD410", id="a bar, then an exception"),
        pytest.param("Health check failed. Server couldn't get a response from detokenizer for last 20 seconds\n" * 9,
                     "undetermined", "undetermined", "", id="health checks fail"),
    ],
)  # fmt: skip
def test_verdict(text: str, verdict: str, grade: str, leader: str, tmp_path: Path) -> None:
    """A log gives the verdict that its lines carry, and no other."""
    found = of(text, tmp_path)
    assert (found.verdict, found.grade) == (verdict, grade)
    assert not leader or found.hypotheses[0].id == leader


@pytest.mark.parametrize(
    ("now", "verdict"), [("12:00:15", "slow-start"), ("12:30:00", "undetermined"), ("23:00:00", "undetermined")]
)
def test_silence_while_loading(now: str, verdict: str, tmp_path: Path) -> None:
    """A step that is seconds old is a start; half an hour of silence, or eleven, tell nothing by themselves."""
    found = of(LOADING, tmp_path, now)
    assert found.verdict == verdict
    assert found.grade != "confirmed"


def test_a_bar_that_stands(tmp_path: Path) -> None:
    """A bar that stands for ten times its step and a minute is no progress any more."""
    assert of(LOADING + BAR, tmp_path, "12:01:30").verdict == "slow-start"
    assert of(LOADING + BAR, tmp_path, "12:20:00").verdict == "undetermined"


def test_an_idle_server_may_be_silent(tmp_path: Path) -> None:
    """After an answer a server may be silent for as long as nobody asks."""
    assert of(READY + BATCH + DONE, tmp_path, "23:00:00").verdict == "healthy"


def test_who_failed_first(tmp_path: Path) -> None:
    """The rank that failed is named, not those who waited for it."""
    victim = (
        "[rank3]:[E421 04:13:43 ProcessGroupGloo.cpp:143] Rank 3 successfully reached monitoredBarrier, but received "
        "errors while waiting for send/recv from rank 1. Please check rank 1 logs for faulty rank.\n"
    )
    found = of(LOADING + victim, tmp_path)
    assert found.verdict == "crashed"
    assert [one.rank for one in found.culprits] == [{"tp": 1}]
    assert of(LOADING + EXCEPTION, tmp_path).culprits[0].rank == {"tp": 1}


@pytest.mark.parametrize(("came", "verdict"), [(8, "hung"), (3, "undetermined")])
def test_barrier_of_the_store(came: int, verdict: str, tmp_path: Path) -> None:
    """More ranks than the group has never leave the store's barrier; fewer may still come."""
    text = (
        "Waiting in store based barrier to initialize process group for rank: 0, key: store_based_barrier_key:1 "
        f"(world_size=4, worker_count={came}, timeout=0:30:00)\n"
    )
    found = of(text, tmp_path)
    assert (found.verdict, found.phase) == (verdict, "rendezvous")


def test_counts_of_collectives(tmp_path: Path) -> None:
    """Where NCCL's counts are in the log, the rank that is behind is who has to move."""
    ras = "".join(
        f"  Rank {rank} has launched up to operation {count} -- GPU 0 managed by process {1943 + rank} on node x\n"
        for rank, count in ((0, 17), (1, 7))
    )
    found = of(READY + BATCH + WATCHDOG + ras, tmp_path)
    assert found.verdict == "hung"
    assert [one.rank for one in found.culprits] == [{"tp": 1}]


def test_who_stays_out(tmp_path: Path) -> None:
    """Where the watchdog dumped the stacks of all ranks, the one outside the collective is who has to move."""
    dumps = """Process 1944: sglang::scheduler_TP1
Thread 1944 (idle): "MainThread"
    wait (threading.py:324)
    event_loop_normal (managers/scheduler.py:800)
Process 1943: sglang::scheduler_TP0
Thread 1943 (active): "MainThread"
    all_reduce (torch/distributed/distributed_c10d.py:3075)
    event_loop_normal (managers/scheduler.py:800)
"""
    found = of("sglang==0.5.8\n" + READY + BATCH + WATCHDOG + dumps + SIGQUIT, tmp_path)
    assert (found.verdict, found.target.engine_version) == ("hung", "0.5.8")
    assert [(one.pid, one.rank) for one in found.culprits] == [(1944, {"tp": 1})]
    assert "watch --until hang" in found.next_steps[1].action


def test_the_three_readings(tmp_path: Path) -> None:
    """Where a log does not suffice, the next steps are the readings that would, with their commands."""
    steps = [step.action for step in of(LOADING, tmp_path).next_steps]
    assert "hangdoc watch" in steps[0]
    assert "top -H" in steps[1]
    assert "nvidia-smi --query-gpu" in steps[1]
    assert "py-spy dump" in steps[2]


def test_a_live_launch_is_none_of_them() -> None:
    """Where the processes were looked at, no hypothesis that rests on a log alone is open."""
    golden = Path(__file__).resolve().parents[2] / "golden" / "absent-barrier.hangtrace"
    found = diagnose(read([golden], Wishes()), "trace")
    assert {one.grade for one in found.hypotheses if one.id in LOG_ONLY} == {"ruled-out"}
    assert {one.id for one in found.hypotheses} >= LOG_ONLY


LOG_ONLY = {"HD330", "HD410", "HD520", "HD901", "HD902", "HD903"}
