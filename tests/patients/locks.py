"""Patients that wait for a lock: one that nobody can release, and ones that somebody will."""

from __future__ import annotations

import multiprocessing
import threading
import time

from tests.patients.stage import Stage, get_on, patient

LONG_S = 3600.0


def take_twice(lock: threading.Lock) -> None:
    with lock:
        lock.acquire()


@patient("blocked", culprit="rank1")
def lock_taken_twice(stage: Stage) -> None:
    """Rank 1's only thread waits for a lock that it holds itself; rank 0 waits for rank 1."""

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        take_twice(threading.Lock())

    stage.two_ranks(rank)


def take_in_order(
    first: threading.Lock, second: threading.Lock, both: threading.Barrier, done: threading.Event
) -> None:
    with first:
        both.wait()
        done.set()
        with second:
            pass


@patient("blocked", "undetermined", culprit="rank1")
def two_locks_crosswise(stage: Stage) -> None:
    """Two threads of rank 1 hold one lock each and wait for the other's; its main thread waits for both threads."""

    def rank(stage: Stage) -> None:
        one, other, both = threading.Lock(), threading.Lock(), threading.Barrier(2)
        held = [threading.Event(), threading.Event()]
        threads = [
            threading.Thread(target=take_in_order, args=(one, other, both, held[0])),
            threading.Thread(target=take_in_order, args=(other, one, both, held[1])),
        ]
        for thread in threads:
            thread.start()
        for event in held:
            event.wait()
        stage.arrive("rank1")
        for thread in threads:
            thread.join()

    stage.two_ranks(rank)


@patient("undetermined", "slow-start", "healthy")
def lock_held_by_a_working_thread(stage: Stage) -> None:
    """Rank 1's main thread waits for a lock that another thread holds while it reads on and on."""

    def rank(stage: Stage) -> None:
        lock = threading.Lock()
        lock.acquire()
        threading.Thread(target=get_on, daemon=True).start()
        stage.arrive("rank1")
        lock.acquire()

    stage.two_ranks(rank)


@patient("undetermined", "slow-start", "healthy")
def lock_held_by_a_sleeping_thread(stage: Stage) -> None:
    """Rank 1's main thread waits for a lock whose holder sleeps for a time and will release it then."""

    def rank(stage: Stage) -> None:
        lock = threading.Lock()
        lock.acquire()
        threading.Thread(target=time.sleep, args=(LONG_S,), daemon=True).start()
        stage.arrive("rank1")
        lock.acquire()

    stage.two_ranks(rank)


@patient("undetermined", "slow-start", "healthy")
def event_with_a_timer(stage: Stage) -> None:
    """Rank 1 waits for an event that a timer will set."""

    def rank(stage: Stage) -> None:
        event = threading.Event()
        timer = threading.Timer(LONG_S, event.set)
        timer.daemon = True
        timer.start()
        stage.arrive("rank1")
        event.wait()

    stage.two_ranks(rank)


@patient("undetermined", "slow-start", "healthy", parts=("launcher", "rank1"))
def lock_of_another_process(stage: Stage) -> None:
    """Rank 1 waits for a lock that another process holds and will release: its own silence proves nothing."""
    lock = multiprocessing.get_context("fork").Lock()
    lock.acquire()

    def rank() -> None:
        stage.arrive("rank1")
        lock.acquire()

    stage.fork(rank)
    stage.arrive("launcher")
    time.sleep(LONG_S)
