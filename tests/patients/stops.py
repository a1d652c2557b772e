"""Patients that a signal has stopped: for good, and for a moment."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import time
from pathlib import Path

from tests.patients.build import library
from tests.patients.stage import TWO_RANKS, Stage, get_on, patient


@patient("blocked", culprit="rank1", edges=TWO_RANKS)
def stopped_rank(stage: Stage) -> None:
    """Rank 1 is stopped by a signal; rank 0 waits for it."""
    word = stage.waiting_rank()
    pid = stage.fork(get_on)
    word.close()
    os.kill(pid, signal.SIGSTOP)
    os.waitpid(pid, os.WUNTRACED)
    stage.arrive("rank1", pid)
    stage.wait()


@patient("undetermined", "slow-start", "healthy")
def stopped_for_moments(stage: Stage) -> None:
    """Rank 1 is stopped again and again, and each time continued."""
    word = stage.waiting_rank()
    pid = stage.fork(get_on)
    word.close()
    stage.arrive("rank1", pid)
    stage.arrive("launcher")
    while True:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.7)
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.7)


@patient("blocked", culprit="rank1", needs="freezer", companion="freezer", edges=TWO_RANKS)
def frozen_rank(stage: Stage) -> None:
    """Rank 1's control group is frozen, as a suspended container is; rank 0 waits for it."""
    cell, switch, frozen = Path(stage.folder, "word").read_text().split()
    word = stage.waiting_rank()
    pid = stage.fork(get_on)
    word.close()
    Path(cell, "cgroup.procs").write_text(str(pid))
    Path(cell, switch).write_text(frozen)
    while not _is_frozen(Path(cell), switch):
        pass
    stage.arrive("rank1", pid)
    stage.wait()


def _is_frozen(cell: Path, switch: str) -> bool:
    if switch == "freezer.state":
        return Path(cell, switch).read_text().strip() == "FROZEN"
    return "frozen 1" in Path(cell, "cgroup.events").read_text()


@patient("blocked", "undetermined", culprit="rank1", parts=("launcher", "rank0", "rank1", "rank2"))
def stopped_before_a_barrier(stage: Stage) -> None:
    """Rank 1 was stopped before it came to the barrier in which the two others wait."""
    barrier = multiprocessing.get_context("fork").Barrier(3)

    def rank(name: str) -> None:
        stage.arrive(name)
        if name == "rank1":
            os.kill(os.getpid(), signal.SIGSTOP)
        barrier.wait()

    for name in ("rank0", "rank1", "rank2"):
        stage.fork(rank, name)
    stage.wait()


@patient("undetermined", "healthy", parts=("launcher", "rank0", "rank1", "helper"))
def stopped_helper_beside_an_idle_pool(stage: Stage) -> None:
    """Two workers wait for tasks of a queue in shared memory; a helper that nobody needs is stopped."""
    tasks = multiprocessing.get_context("fork").SimpleQueue()

    def work(name: str) -> None:
        stage.arrive(name)
        if name == "helper":
            os.kill(os.getpid(), signal.SIGSTOP)
        tasks.get()

    for name in ("rank0", "rank1", "helper"):
        stage.fork(work, name)
    stage.wait()


@patient("undetermined", "healthy", parts=("launcher", "rank0", "rank1", "rank2", "helper"))
def stopped_helper_beside_a_barrier(stage: Stage) -> None:
    """Rank 1 sleeps before it comes to the barrier of three; a helper that nobody needs is stopped."""
    barrier = multiprocessing.get_context("fork").Barrier(3)

    def work(name: str) -> None:
        stage.arrive(name)
        if name == "helper":
            os.kill(os.getpid(), signal.SIGSTOP)
        if name == "rank1":
            time.sleep(3600)
        barrier.wait()

    for name in ("rank0", "rank1", "rank2", "helper"):
        stage.fork(work, name)
    stage.wait()


VFORK = """
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
void wait_for_the_child(int ready) {
    if (vfork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        dprintf(ready, "child %d\\n", getpid());
        for (;;) pause();
    }
}
"""


@patient(
    "blocked",
    "undetermined",
    culprit="child",
    also=("rank1",),
    needs="cc",
    parts=("launcher", "rank0", "rank1", "child"),
    edges=TWO_RANKS,
)
def parent_of_a_vfork(stage: Stage) -> None:
    """Rank 1 is in state D: its child of vfork(2) never comes to exec, and until then the parent does not run."""
    vfork = library(stage, "vfork.c", VFORK)

    def rank(stage: Stage) -> None:
        native = ctypes.CDLL(vfork)
        stage.arrive("rank1")
        native.wait_for_the_child(stage.ready)

    stage.two_ranks(rank)
