"""Patients that compute in plain Python while other ranks wait for them: work that ends, and no hang."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable

from tests.patients.stage import Stage, patient

THREE_RANKS = ("launcher", "rank0", "rank1", "rank2")


def before_a_barrier(stage: Stage, work: Callable[[], object]) -> None:
    """Be three ranks: rank 1 works before it comes to the barrier in which the two others wait."""
    barrier = multiprocessing.get_context("fork").Barrier(3)

    def rank(name: str) -> None:
        stage.arrive(name)
        if name == "rank1":
            work()
        barrier.wait()

    for name in THREE_RANKS[1:]:
        stage.fork(rank, name)
    stage.wait()


def tokenise(texts: int) -> int:
    counts: dict[int, int] = {}
    for text in range(texts):
        token = text * 2654435761 % 1000003
        counts[token] = counts.get(token, 0) + 1
    return len(counts)


@patient("undetermined", "slow-start", "healthy", parts=THREE_RANKS, burns=("rank1",))
def tokenising_before_a_barrier(stage: Stage) -> None:
    """Rank 1 counts tokens in plain Python and will come to the barrier; the two others wait there."""
    before_a_barrier(stage, lambda: tokenise(1_000_000_000))


def search(tasks: int) -> int:
    stack, best = [(0, tasks)], 0
    try:
        while True:
            low, high = stack.pop()
            if high - low > 1:
                middle = (low + high) // 2
                stack += [(low, middle), (middle, high)]
            else:
                best = max(best, low * 2654435761 % 1000003)
    except IndexError:
        return best


@patient("undetermined", "slow-start", "healthy", parts=THREE_RANKS, burns=("rank1",))
def work_list_before_a_barrier(stage: Stage) -> None:
    """Rank 1 works on a list until it is empty, in a loop that only an exception ends; the others wait for it."""
    before_a_barrier(stage, lambda: search(1_000_000_000))


@patient("undetermined", "slow-start", "healthy", parts=THREE_RANKS, burns=("rank1",))
def computation_that_a_rank_waits_for(stage: Stage) -> None:
    """Rank 1 adds numbers in one native call that keeps the interpreter lock, which its other threads ask for."""

    def look_now_and_then() -> None:
        while True:
            threading.Event().wait(0.001)

    def work() -> int:
        for _ in range(3):
            threading.Thread(target=look_now_and_then, daemon=True).start()
        return sum(range(10**12))

    before_a_barrier(stage, work)
