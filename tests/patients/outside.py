"""Patients that wait for somebody outside the launch, who works, rests, or has not come yet: none of them hangs."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable

from tests.patients.pipes import BLOCK, fill
from tests.patients.stage import Stage, patient

FORK = multiprocessing.get_context("fork")


def leave_the_launch(stage: Stage, act: Callable[[], object]) -> None:
    """Start a process that is no child of anybody in the launch, and ends with the launcher all the same."""
    alive, held = os.pipe()
    left, leaving = os.pipe()
    go_between = os.fork()
    if go_between == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        for end in (held, left, stage.ready):
            os.close(end)
        os.close(leaving)
        act()
        os.read(alive, 1)  # until the launcher and all who have its pipes are gone
        os._exit(0)
    os.close(leaving)
    os.close(alive)
    os.waitpid(go_between, 0)
    os.read(left, 1)
    os.close(left)


def barrier_of(stage: Stage, gone_wrong: Callable[[int], object]) -> None:
    """Have two ranks in a barrier of three whose third party is outside the launch; a helper has gone wrong."""
    barrier = FORK.Barrier(3)
    leave_the_launch(stage, lambda: None)  # a fork has given it the memory of the barrier

    def rank(name: str) -> None:
        stage.arrive(name)
        barrier.wait()

    helper = stage.fork(signal.pause)
    gone_wrong(helper)
    stage.arrive("helper", helper)
    for name in ("rank0", "rank1"):
        stage.fork(rank, name)
    stage.arrive("launcher")
    for child in stage.children[1:]:
        os.waitpid(child, 0)


@patient("undetermined", "healthy", "slow-start", parts=("launcher", "rank0", "rank1", "helper"))
def party_outside_beside_a_killed_helper(stage: Stage) -> None:
    """The last party of the barrier works outside the launch and will come; the helper was killed on purpose."""

    def kill(helper: int) -> None:
        os.kill(helper, signal.SIGKILL)
        os.waitid(os.P_PID, helper, os.WEXITED | os.WNOWAIT)

    barrier_of(stage, kill)


@patient("undetermined", "healthy", "slow-start", parts=("launcher", "rank0", "rank1", "helper"))
def party_outside_beside_a_stopped_helper(stage: Stage) -> None:
    """The same, and the helper, which nobody needs, was stopped."""

    def stop(helper: int) -> None:
        os.kill(helper, signal.SIGSTOP)
        os.waitpid(helper, os.WUNTRACED)

    barrier_of(stage, stop)


@patient("undetermined", "healthy", "slow-start")
def reader_outside_that_rests(stage: Stage) -> None:
    """Rank 1 writes its output to a reader outside the launch, which rests before it reads on; the pipe is full."""
    reading, writing = os.pipe()

    def take_a_piece() -> None:
        os.close(writing)
        os.read(reading, len(BLOCK))

    leave_the_launch(stage, take_a_piece)
    os.close(reading)

    def rank(stage: Stage) -> None:
        os.dup2(writing, 1)
        os.set_blocking(1, False)
        fill(1)
        os.set_blocking(1, True)
        stage.arrive("rank1")
        while True:
            os.write(1, BLOCK)

    stage.two_ranks(rank)
