"""Patients a member of which is gone: killed while the others wait for it, or in order."""

from __future__ import annotations

import ctypes
import os
import queue
import selectors
import signal
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

from tests.patients.stage import TWO_RANKS, Stage, get_on, patient


def die(pid: int, stage: Stage) -> None:
    """Wait for the death of a child without reaping it."""
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    stage.arrive("rank1", pid)


@patient("crashed", culprit="rank1", edges=TWO_RANKS[:1])
def killed_rank(stage: Stage) -> None:
    """Rank 1 was killed, nobody reaps it, and rank 0 still waits for it on a socket that a third holds open."""
    word = stage.waiting_rank()
    pid = stage.fork(signal.pause)
    os.kill(pid, signal.SIGKILL)
    die(pid, stage)
    stage.wait()
    word.close()


@patient("undetermined", "healthy", "slow-start")
def member_that_left(stage: Stage) -> None:
    """Rank 1 did its work and left in order, before anybody looked; rank 0 goes on working."""

    def worker() -> None:
        stage.arrive("rank0")
        get_on()

    stage.fork(worker)
    pid = stage.fork(os.getpid)
    die(pid, stage)
    stage.wait()


@patient("undetermined", "healthy", "slow-start")
def finished_job_beside_an_idle_pool(stage: Stage) -> None:
    """Rank 1 did its work and left; its parent waits for rank 0 first, an idle pool of threads."""

    def pool() -> None:
        work: queue.SimpleQueue[None] = queue.SimpleQueue()
        thread = threading.Thread(target=work.get)
        thread.start()
        stage.arrive("rank0")
        thread.join()

    stage.fork(pool)
    die(stage.fork(os.getpid), stage)
    stage.wait()


@patient("undetermined", "healthy", "slow-start", parts=("launcher", "rank1"))
def forgotten_child_of_an_idle_server(stage: Stage) -> None:
    """A child did its work and left; its parent, an idle server, forgot to reap it."""
    pid = stage.fork(os.getpid)
    die(pid, stage)
    listener = socket.create_server(("127.0.0.1", 0))
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        stage.arrive("launcher")
        selector.select()


@patient("undetermined", "healthy", "slow-start")
def children_that_come_and_go(stage: Stage) -> None:
    """An idle rank beside a launcher that runs one short child after the other."""

    def rank(name: str) -> None:
        stage.arrive(name)
        signal.pause()

    stage.fork(rank, "rank0")
    stage.fork(rank, "rank1")
    stage.arrive("launcher")
    while True:
        subprocess.run(["/bin/sleep", "0.3"], check=True)


def log_to_a_file(stage: Stage) -> None:
    """Have the launch's output in a file, where it can be read again."""
    with Path(stage.folder, "launch.log").open("wb") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)


@patient("crashed", "blocked", "hung", "undetermined", culprit="rank1", edges=TWO_RANKS)
def exception_in_a_thread(stage: Stage) -> None:
    """The thread that should bring rank 1's results raised and said so in the log; its main thread still waits."""
    log_to_a_file(stage)

    def load() -> None:
        raise RuntimeError("shard 3 of 8 has the wrong size")

    def rank(stage: Stage) -> None:
        results: queue.SimpleQueue[None] = queue.SimpleQueue()
        loader = threading.Thread(target=load)
        loader.start()
        loader.join()
        stage.arrive("rank1")
        results.get()

    stage.two_ranks(rank)


def end_this_thread() -> None:
    """End the main thread alone, as native code does now and then; the process lives on with its other threads."""
    ctypes.CDLL(None).syscall(EXIT, 0)


EXIT = {"x86_64": 60, "aarch64": 93}[os.uname().machine]
"""Number of exit(2), which ends one thread."""


def leave_to(act: Callable[[], object], stage: Stage) -> None:
    """Be a rank 1 whose main thread has ended; act: what its other thread does."""

    def survive() -> None:
        while Path(f"/proc/self/task/{os.getpid()}/stat").read_text().rpartition(") ")[2][0] != "Z":
            pass
        stage.arrive("rank1")
        act()

    threading.Thread(target=survive).start()
    end_this_thread()


@patient("blocked", "crashed", "hung", "undetermined", culprit="rank1", edges=TWO_RANKS[:1])
def leader_gone_and_the_rest_waits(stage: Stage) -> None:
    """Rank 1's main thread has ended and its other thread waits for a lock that it holds itself."""

    def take_twice() -> None:
        lock = threading.Lock()
        with lock:
            lock.acquire()

    stage.two_ranks(lambda stage: leave_to(take_twice, stage))


@patient("slow-start", "undetermined", "healthy", goes_on=True)
def leader_gone_and_the_rest_works(stage: Stage) -> None:
    """Rank 1's main thread has ended, so that the process looks like a zombie, and its other thread works on."""
    stage.two_ranks(lambda stage: leave_to(lambda: get_on(stage.beat), stage))


@patient("crashed", culprit="rank1", edges=TWO_RANKS[:1])
def rank_that_exited_with_an_error(stage: Stage) -> None:
    """Rank 1 raised and ended; nobody reaps it, and rank 0 still waits for its word."""
    word = stage.waiting_rank()
    pid = stage.fork(os._exit, 1)
    die(pid, stage)
    stage.wait()
    word.close()
