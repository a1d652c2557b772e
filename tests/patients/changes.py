"""Patients that change while they are looked at: ill for some seconds, then well, and the other way round."""

from __future__ import annotations

import socket
import threading
import time

from tests.patients.stage import TWO_RANKS, Stage, get_on, patient

ILL_S = 6.0
"""How long the illness lasts: longer than the least window of an observation, 5 s."""


@patient("undetermined", "slow-start", "healthy", goes_on=True)
def lock_for_six_seconds(stage: Stage) -> None:
    """Rank 1's main thread waits for a lock that its holder gives back after 6 s, and then works."""

    def hold(lock: threading.Lock, held: threading.Event) -> None:
        with lock:
            held.set()
            time.sleep(ILL_S)

    def rank(stage: Stage) -> None:
        lock, held = threading.Lock(), threading.Event()
        threading.Thread(target=hold, args=(lock, held), daemon=True).start()
        held.wait()
        stage.arrive("rank1")
        with lock:
            get_on(stage.beat)

    stage.two_ranks(rank)


@patient("undetermined", "slow-start", "healthy", goes_on=True)
def timed_wait_of_six_seconds(stage: Stage) -> None:
    """Rank 1's only thread waits for an event that does not come, for 6 s at most, and then works."""

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        threading.Event().wait(ILL_S)
        get_on(stage.beat)

    stage.two_ranks(rank)


@patient("undetermined", "slow-start", "healthy", goes_on=True)
def word_after_six_seconds(stage: Stage) -> None:
    """Rank 0 waits on a socket for rank 1, which sleeps for 6 s and then speaks; then both work."""
    ours, theirs = socket.socketpair()

    def wait_for_a_word() -> None:
        stage.arrive("rank0")
        ours.recv(1)
        get_on(stage.beat)

    def rank() -> None:
        stage.arrive("rank1")
        time.sleep(ILL_S)
        theirs.send(b"!")
        get_on()

    stage.fork(wait_for_a_word)
    stage.fork(rank)
    stage.wait()


def look_busy_until(end_s: float) -> int:
    turns = 0
    while time.monotonic() < end_s:
        turns += 1
    return turns


@patient("undetermined", "slow-start", "healthy", goes_on=True)
def loop_for_six_seconds(stage: Stage) -> None:
    """Rank 1 loops in one Python function for 6 s, and then works."""

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        look_busy_until(time.monotonic() + ILL_S)
        get_on(stage.beat)

    stage.two_ranks(rank)


@patient("slow-start", "blocked", "undetermined", culprit="rank1", edges=TWO_RANKS)
def work_for_six_seconds_then_nothing(stage: Stage) -> None:
    """Rank 1 reads on for 6 s, and then waits for a lock that it holds itself."""

    def rank(stage: Stage) -> None:
        end_s = time.monotonic() + ILL_S

        def until_then() -> None:
            if time.monotonic() > end_s:
                lock = threading.Lock()
                with lock:
                    lock.acquire()

        stage.arrive("rank1")
        get_on(until_then)

    stage.two_ranks(rank)
