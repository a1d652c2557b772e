"""Patients a member of which is gone: killed while the others wait for it, or in order."""

from __future__ import annotations

import os
import queue
import selectors
import signal
import socket
import subprocess
import threading

from tests.patients.stage import Stage, get_on, patient


def die(pid: int, stage: Stage) -> None:
    """Wait for the death of a child without reaping it."""
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    stage.arrive("rank1", pid)


@patient("crashed", culprit="rank1")
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
