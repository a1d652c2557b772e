"""Patients with something beside them that looks like the cause, or like work, and is neither."""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import threading

from tests.patients.build import kernels
from tests.patients.stage import TWO_RANKS, Stage, get_on, patient

OBJECTS = 400_000
TASKS = 40


def compile_for_ever(source: str) -> None:
    while True:
        subprocess.run(["cc", "-O2", "-c", source, "-o", os.devnull], check=True)


@patient("slow-start", "undetermined", "healthy", needs="cc")
def compile_workers_that_a_rank_waits_for(stage: Stage) -> None:
    """Rank 1 waits for two workers, each of which runs one compiler after the other; rank 0 waits for rank 1."""
    source = kernels(stage)

    def rank(stage: Stage) -> None:
        workers = [stage.fork(compile_for_ever, source) for _ in range(2)]
        stage.arrive("rank1")
        for worker in workers:
            os.waitpid(worker, 0)

    stage.two_ranks(rank)


@patient("healthy", "undetermined", "slow-start", needs="cc", parts=("launcher", "helper"))
def idle_server_beside_compile_workers(stage: Stage) -> None:
    """A server without a request, and a helper of it that compiles what might be needed later."""
    source = kernels(stage)

    def helper() -> None:
        stage.arrive("helper")
        compile_for_ever(source)

    stage.fork(helper)
    listener = socket.create_server(("127.0.0.1", 0))
    stage.arrive("launcher")
    listener.accept()


@patient(
    "blocked",
    "undetermined",
    culprit="rank1",
    needs="cc",
    parts=("launcher", "rank0", "rank1", "helper"),
    edges=TWO_RANKS,
)
def lock_taken_twice_beside_compile_workers(stage: Stage) -> None:
    """Rank 1 waits for a lock that it holds itself, while a helper that nobody waits for compiles."""
    source = kernels(stage)

    def helper() -> None:
        stage.arrive("helper")
        compile_for_ever(source)

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        lock = threading.Lock()
        with lock:
            lock.acquire()

    word = stage.waiting_rank()
    stage.fork(rank, stage)
    word.close()
    stage.fork(helper)
    stage.wait()


@patient("slow-start", "undetermined", "healthy", burns=("rank1",), goes_on=True)
def garbage_collector_storm(stage: Stage) -> None:
    """Rank 1 has many small objects, and a collector that goes through all of them again and again."""

    def rank(stage: Stage) -> None:
        kept = [[number] for number in range(OBJECTS)]
        stage.arrive("rank1")
        while kept:
            gc.collect()
            stage.beat()

    stage.two_ranks(rank)


@patient("healthy", "undetermined", "slow-start", companion="neighbour", parts=("launcher", "rank0", "rank1"))
def idle_beside_a_busy_launch(stage: Stage) -> None:
    """An idle launch, while another one on the same machine spins."""

    def rank(name: str) -> None:
        stage.arrive(name)
        signal.pause()

    stage.fork(rank, "rank0")
    stage.fork(rank, "rank1")
    listener = socket.create_server(("127.0.0.1", 0))
    stage.arrive("launcher")
    listener.accept()


@patient("healthy", "undetermined", "slow-start", companion="observer", parts=("launcher", "rank0"))
def idle_while_another_hangdoc_looks(stage: Stage) -> None:
    """An idle launch at which a second hangdoc looks at the same time: what it reads is none of the launch's work."""

    def rank() -> None:
        stage.arrive("rank0")
        signal.pause()

    stage.fork(rank)
    listener = socket.create_server(("127.0.0.1", 0))
    stage.arrive("launcher")
    listener.accept()


@patient("slow-start", "undetermined", "healthy", companion="observer", goes_on=True)
def work_while_another_hangdoc_looks(stage: Stage) -> None:
    """Rank 1 works and rank 0 waits for it, while a second hangdoc looks."""

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        get_on(stage.beat)

    stage.two_ranks(rank)


@patient("blocked", culprit="rank1", companion="observer", edges=TWO_RANKS)
def lock_taken_twice_while_another_hangdoc_looks(stage: Stage) -> None:
    """Rank 1 waits for a lock that it holds itself: a second hangdoc is no reason to think that it moves."""

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        lock = threading.Lock()
        with lock:
            lock.acquire()

    stage.two_ranks(rank)


@patient("blocked", culprit="rank1", edges=TWO_RANKS)
def lock_taken_twice_before_many_idle_threads(stage: Stage) -> None:
    """Rank 1's main thread waits for a lock that it holds itself, and forty threads of it wait for it, too."""

    def rank(stage: Stage) -> None:
        lock, started = threading.Lock(), threading.Barrier(TASKS + 1)

        def follow() -> None:
            started.wait()
            with lock:
                pass

        with lock:
            for _ in range(TASKS):
                threading.Thread(target=follow, daemon=True).start()
            started.wait()
            stage.arrive("rank1")
            lock.acquire()

    stage.two_ranks(rank)
