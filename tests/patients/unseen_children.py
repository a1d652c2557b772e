"""Unseen patients with a helper, a child or a peer that was left with a full pipe, killed, stopped or forgotten."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import socket
import traceback
from collections.abc import Callable

from tests.patients.stage import Stage, get_on, patient
from tests.patients.unseen_props import arrive_together, fork_together, log_to

FORK = multiprocessing.get_context("fork")
MORE_THAN_A_PIPE_HOLDS = 1 << 20
PTRACE_SEIZE, PTRACE_INTERRUPT, WAIT_FOR_ALL = 0x4206, 0x4207, 0x40000000
"""Numbers of ptrace(2), and __WALL of waitpid(2)."""


def write_a_lot(descriptor: int) -> None:
    os.dup2(descriptor, 1)
    os.execv("/usr/bin/head", ["head", "-c", str(MORE_THAN_A_PIPE_HOLDS), "/dev/zero"])


@patient("blocked", parts=("launcher", "rank0", "pair"), culprit="pair")
def helper_whose_output_is_read_too_late(stage: Stage) -> None:
    """Rank 1 waits for its helper's end before it would read the output, which fills the pipe."""

    def rank(stage: Stage) -> None:
        reading, writing = os.pipe()
        helper = stage.fork(write_a_lot, writing)
        os.close(writing)
        arrive_together(stage, {os.getpid(): "pair", helper: "pair"})
        os.waitpid(helper, 0)
        os.read(reading, MORE_THAN_A_PIPE_HOLDS)

    stage.two_ranks(rank)


@patient("blocked", parts=("launcher", "rank0", "pair"), culprit="pair")
def helper_whose_other_output_nobody_reads(stage: Stage) -> None:
    """Rank 1 reads its helper's output to the end, while the helper fills the pipe that takes its errors."""

    def rank(stage: Stage) -> None:
        (output, ours), (errors, theirs) = os.pipe(), os.pipe()

        def help_out() -> None:
            os.close(output)
            os.close(errors)
            os.dup2(ours, 1)
            os.dup2(theirs, 2)
            script = "i=0; while [ $i -lt 99999 ]; do echo warning: deprecated option >&2; i=$((i+1)); done; echo done"
            os.execv("/bin/sh", ["sh", "-c", script])

        helper = stage.fork(help_out)
        os.close(ours)
        os.close(theirs)
        arrive_together(stage, {os.getpid(): "pair", helper: "pair"})
        while os.read(output, 4096):
            pass

    stage.two_ranks(rank)


@patient("blocked", "undetermined", parts=("launcher", "rank0", "rank1", "holder"), culprit="holder")
def pipe_that_a_bystander_keeps_open(stage: Stage) -> None:
    """Rank 1 reads a pipe to its end; the writer has left, but a helper inherited the other end, and sleeps."""

    def bystander(reading: int) -> None:
        os.close(reading)
        stage.arrive("holder")
        signal.pause()

    def rank(stage: Stage) -> None:
        reading, writing = os.pipe()
        stage.fork(bystander, reading)
        os.waitpid(stage.fork(os.write, writing, b"result"), 0)
        os.close(writing)
        stage.arrive("rank1")
        while os.read(reading, 4096):
            pass

    stage.two_ranks(rank)


@patient("blocked", parts=("launcher", "pair"), culprit="pair")
def queue_that_is_joined_before_it_is_read(stage: Stage) -> None:
    """Rank 0 joins rank 1 before it takes from their queue; rank 1 ends only when its feeder has written all of it."""

    def produce(queue: multiprocessing.Queue[bytes], word: int) -> None:
        queue.put(bytes(MORE_THAN_A_PIPE_HOLDS))
        queue.close()
        os.write(word, b".")
        queue.join_thread()

    def consume() -> None:
        queue: multiprocessing.Queue[bytes] = FORK.Queue()
        reading, writing = os.pipe()
        producer = stage.fork(produce, queue, writing)
        os.read(reading, 1)
        arrive_together(stage, {os.getpid(): "pair", producer: "pair"})
        os.waitpid(producer, 0)
        queue.get()

    stage.fork(consume)
    stage.wait()


@patient("blocked", parts=("launcher", "rank0", "rank1", "helper"), culprit="helper")
def stopped_helper(stage: Stage) -> None:
    """Rank 1 reads from its helper, which a signal has stopped; rank 0 waits for rank 1."""

    def work(reading: int) -> None:
        os.close(reading)
        os.kill(os.getpid(), signal.SIGSTOP)

    def rank(stage: Stage) -> None:
        reading, writing = os.pipe()
        helper = stage.fork(work, reading)
        os.close(writing)
        os.waitpid(helper, os.WUNTRACED)
        arrive_together(stage, {os.getpid(): "rank1", helper: "helper"})
        os.read(reading, 1)

    stage.two_ranks(rank)


def hold_still(pid: int) -> None:
    """Stop a process as a debugger does."""
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    nothing, target = ctypes.c_long(0), ctypes.c_long(pid)
    if ptrace(ctypes.c_long(PTRACE_SEIZE), target, nothing, nothing) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")
    ptrace(ctypes.c_long(PTRACE_INTERRUPT), target, nothing, nothing)
    os.waitpid(pid, WAIT_FOR_ALL)


@patient("blocked", parts=("launcher", "rank0", "traced"), culprit="traced")
def rank_in_the_hands_of_a_debugger(stage: Stage) -> None:
    """A debugger has stopped rank 1 and waits itself: one of the two has to move; rank 0 waits for rank 1."""
    word = stage.waiting_rank()
    rank = stage.fork(get_on)
    word.close()

    def debug(meet: Callable[[], None]) -> None:
        hold_still(rank)
        meet()
        signal.pause()

    debugger = fork_together(stage, ("traced", debug))
    arrive_together(stage, {rank: "traced", **debugger})
    stage.wait()


@patient("blocked", "undetermined", culprit="rank1")
def two_ends_that_were_told_as_one(stage: Stage) -> None:
    """Two helpers of rank 1 ended and one SIGCHLD came for both; it reaped one and waits for a signal for the other."""

    def rank(stage: Stage) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        for pid in [stage.fork(os.getpid), stage.fork(os.getpid)]:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        signal.sigwait({signal.SIGCHLD})
        os.wait()
        stage.arrive("rank1")
        signal.sigwait({signal.SIGCHLD})

    stage.two_ranks(rank)


@patient("crashed", parts=("launcher", "rank0", "rank1", "rank2"), culprit="rank1")
def killed_with_the_shared_lock(stage: Stage) -> None:
    """Rank 1 was killed while it held a lock that all ranks share; rank 0 and rank 2 wait for the lock."""
    lock = FORK.Lock()

    def take_and_die(meet: Callable[[], None]) -> None:
        lock.acquire()
        meet()
        os.kill(os.getpid(), signal.SIGKILL)

    def take(meet: Callable[[], None]) -> None:
        meet()
        lock.acquire()

    parts = fork_together(stage, ("rank0", take), ("rank1", take_and_die), ("rank2", take))
    os.waitid(os.P_PID, stage.children[1], os.WEXITED | os.WNOWAIT)
    arrive_together(stage, parts)
    stage.wait()


@patient("crashed", parts=("launcher", "rank0", "rank1", "rank2"), culprit="rank1")
def exit_one_before_the_barrier(stage: Stage) -> None:
    """Rank 1 raised, wrote so to its log and left with status 1; the others wait for it in a barrier of three."""
    barrier = FORK.Barrier(3)

    def rank(number: int) -> Callable[[Callable[[], None]], None]:
        def act(meet: Callable[[], None]) -> None:
            log_to(f"{stage.folder}/rank{number}.log")
            meet()
            if number == 1:
                try:
                    bytes(1 << 62)  # the cache, which does not fit
                except MemoryError:
                    traceback.print_exc()
                    os._exit(1)
            barrier.wait()

        return act

    parts = fork_together(stage, *((f"rank{number}", rank(number)) for number in range(3)))
    os.waitid(os.P_PID, stage.children[1], os.WEXITED | os.WNOWAIT)
    arrive_together(stage, parts)
    stage.wait()


@patient("crashed", parts=("launcher", "rank0", "rank1", "helper"), culprit="helper")
def aborted_helper_whose_socket_stays_open(stage: Stage) -> None:
    """Rank 1's helper aborted; rank 1 sees no end of its socket, since it holds the helper's end too, and waits."""

    def rank(stage: Stage) -> None:
        ours, theirs = socket.socketpair()
        helper = stage.fork(os.abort)
        os.waitid(os.P_PID, helper, os.WEXITED | os.WNOWAIT)
        arrive_together(stage, {os.getpid(): "rank1", helper: "helper"})
        ours.recv(1)
        theirs.close()

    stage.two_ranks(rank)
