"""Patients behind a full pipe or beside a dead member for which somebody will still come: none of them hangs."""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable

from tests.patients.deaths import die
from tests.patients.pipes import BLOCK, fill
from tests.patients.stage import Stage, patient

PAUSE_S = 60.0
"""How long a part rests between two chunks: longer than any look, and short enough to be no end."""

WELL = ("undetermined", "healthy", "slow-start")
FORK = multiprocessing.get_context("fork")


def producer_of(stage: Stage) -> int:
    """Start a rank 1 whose standard output is a pipe that is full; return the reading end."""
    reading, writing = os.pipe()

    def produce() -> None:
        os.close(reading)
        os.dup2(writing, 1)
        os.close(writing)
        os.set_blocking(1, False)
        fill(1)
        os.set_blocking(1, True)
        stage.arrive("rank1")
        while True:
            os.write(1, BLOCK)

    stage.fork(produce)
    os.close(writing)
    return reading


@patient(*WELL, parts=("launcher", "rank1"))
def reader_that_runs_a_job_for_each_chunk(stage: Stage) -> None:
    """The launcher reads a chunk of rank 1's output, and runs a program that takes a minute before the next."""
    reading = producer_of(stage)
    job = subprocess.Popen(["/bin/sleep", str(PAUSE_S)])
    stage.arrive("launcher")
    while True:
        job.wait()
        os.read(reading, len(BLOCK))
        job = subprocess.Popen(["/bin/sleep", str(PAUSE_S)])


@patient(*WELL, parts=("launcher", "rank1"))
def reader_thread_that_rests_between_chunks(stage: Stage) -> None:
    """A thread of the launcher reads rank 1's output with a timed wait between chunks; the main thread joins it."""
    reading = producer_of(stage)

    def read_on() -> None:
        rest = threading.Event()
        while True:
            rest.wait(PAUSE_S)
            os.read(reading, len(BLOCK))

    reader = threading.Thread(target=read_on)
    reader.start()
    stage.arrive("launcher")
    reader.join()


@patient(*WELL, parts=("launcher", "rank1", "rank0"))
def reader_whose_child_sleeps_for_each_chunk(stage: Stage) -> None:
    """The launcher joins a child that works on a chunk; the child has only inherited the reading end."""
    reading = producer_of(stage)

    def work() -> None:
        stage.arrive("rank0")
        time.sleep(PAUSE_S)

    stage.arrive("launcher")
    while True:
        os.waitpid(stage.fork(work), 0)
        os.read(reading, len(BLOCK))


def with_a_dead_sibling(stage: Stage, rank: Callable[[str], object]) -> None:
    """Start two ranks and a helper that was killed and is not reaped; the launcher waits for its ranks in order."""
    for name in ("rank0", "rank2"):
        stage.fork(rank, name)
    dead = stage.fork(signal.pause)
    os.kill(dead, signal.SIGKILL)
    die(dead, stage)


THREE = ("launcher", "rank0", "rank1", "rank2")


@patient(*WELL, parts=THREE)
def queue_fed_now_and_then_beside_a_killed_worker(stage: Stage) -> None:
    """Two workers wait at a queue that a thread of the launcher feeds now and then; a third was killed."""
    work = FORK.SimpleQueue()

    def rank(name: str) -> None:
        stage.arrive(name)
        while True:
            work.get()

    def feed() -> None:
        rest = threading.Event()
        while True:
            rest.wait(PAUSE_S)
            work.put(b"job")

    with_a_dead_sibling(stage, rank)
    threading.Thread(target=feed, daemon=True).start()
    stage.wait()


@patient(*WELL, parts=THREE)
def named_fifo_of_jobs_beside_a_killed_worker(stage: Stage) -> None:
    """Two workers wait at a FIFO with a name, which whoever has a job opens; a third was killed."""
    path = f"{stage.folder}/jobs"
    os.mkfifo(path)

    def rank(name: str) -> None:
        jobs = os.open(path, os.O_RDWR)
        stage.arrive(name)
        while True:
            os.read(jobs, 1)

    with_a_dead_sibling(stage, rank)
    stage.wait()


def become_a_broker(listener: socket.socket, life: int) -> None:
    """Take every client and say nothing, in a session of its own, until the launch that it does not belong to ends."""
    if os.fork():
        os._exit(0)
    os.setsid()
    clients = []
    while life not in (ready := select.select([listener.fileno(), life], [], [])[0]):
        clients += [listener.accept()[0] for _ in ready]


@patient(*WELL, parts=THREE)
def broker_of_jobs_beside_a_killed_worker(stage: Stage) -> None:
    """Two workers wait over TCP for jobs of a broker outside the launch, which has none; a third was killed."""
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    life, alive = os.pipe()

    def outside() -> None:
        os.close(alive)
        become_a_broker(listener, life)

    def rank(name: str) -> None:
        broker = socket.create_connection(address)
        stage.arrive(name)
        broker.recv(1)

    os.waitpid(stage.fork(outside), 0)
    stage.children.clear()
    listener.close()
    os.close(life)
    with_a_dead_sibling(stage, rank)
    stage.wait()
