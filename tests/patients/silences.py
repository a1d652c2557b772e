"""Patients whose main thread waits in one of Python's own queues, conditions and barriers, and nobody will come."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading

from tests.patients.stage import TWO_RANKS, Stage, patient

FORK = multiprocessing.get_context("fork")


@patient("blocked", "undetermined", culprit="rank1", edges=TWO_RANKS)
def condition_that_nobody_notifies(stage: Stage) -> None:
    """Rank 1's only thread waits for a Condition."""

    def rank(stage: Stage) -> None:
        condition = threading.Condition()
        stage.arrive("rank1")
        with condition:
            condition.wait()

    stage.two_ranks(rank)


@patient("blocked", "undetermined", culprit="rank1", edges=TWO_RANKS)
def queue_whose_producer_ended(stage: Stage) -> None:
    """Rank 1's main thread waits for results in a Queue; the thread that should bring them has ended."""

    def rank(stage: Stage) -> None:
        results: queue.Queue[int] = queue.Queue()
        producer = threading.Thread(target=os.getpid)
        producer.start()
        producer.join()
        stage.arrive("rank1")
        results.get()

    stage.two_ranks(rank)


@patient("blocked", "undetermined", culprit="rank1", edges=TWO_RANKS)
def barrier_short_of_a_thread(stage: Stage) -> None:
    """Two threads of rank 1 wait in a Barrier for a third that was never started."""

    def rank(stage: Stage) -> None:
        barrier = threading.Barrier(3)
        threading.Thread(target=barrier.wait, daemon=True).start()
        stage.arrive("rank1")
        barrier.wait()

    stage.two_ranks(rank)


@patient("blocked", "undetermined", culprit="rank1")
def barrier_short_of_a_rank(stage: Stage) -> None:
    """Rank 0 waits in a barrier of all ranks; rank 1 never comes: it waits for a lock that it holds itself."""
    barrier = FORK.Barrier(2)

    def in_time() -> None:
        stage.arrive("rank0")
        barrier.wait()

    def absent() -> None:
        stage.arrive("rank1")
        lock = threading.Lock()
        with lock:
            lock.acquire()

    stage.fork(in_time)
    stage.fork(absent)
    stage.wait()


@patient("crashed", "blocked", "undetermined", culprit="rank1")
def barrier_of_a_killed_rank(stage: Stage) -> None:
    """Rank 0 waits in a barrier of all ranks; rank 1 was killed and nobody has reaped it."""
    barrier = FORK.Barrier(2)

    def in_time() -> None:
        stage.arrive("rank0")
        barrier.wait()

    stage.fork(in_time)
    killed = stage.fork(signal.pause)
    os.kill(killed, signal.SIGKILL)
    os.waitid(os.P_PID, killed, os.WEXITED | os.WNOWAIT)
    stage.arrive("rank1", killed)
    stage.wait()


@patient("blocked", "crashed", "undetermined", culprit="rank1", also=("rank0",))
def shared_lock_of_a_killed_member(stage: Stage) -> None:
    """Rank 1 waits for a multiprocessing Lock whose holder was killed and has been reaped; rank 0 waits for rank 1."""
    lock = FORK.Lock()
    reading, writing = os.pipe()

    def hold() -> None:
        lock.acquire()
        os.write(writing, b"!")
        signal.pause()

    holder = stage.fork(hold)
    os.read(reading, 1)
    os.kill(holder, signal.SIGKILL)
    os.waitpid(holder, 0)
    stage.children.remove(holder)
    os.close(reading)
    os.close(writing)

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        lock.acquire()

    stage.two_ranks(rank)
