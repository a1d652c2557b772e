"""Patients that burn CPU: in vain, and with something to show for it."""

from __future__ import annotations

import asyncio
import ctypes
import hashlib
import mmap
import os
import select
import sys
import threading
import time
import zlib
from pathlib import Path

from tests.patients.build import library, program
from tests.patients.stage import TWO_RANKS, Stage, become, patient

SPINNER = r"""
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int count, char **words) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (count != 3 || getppid() != atoi(words[1])) return 1;
    dprintf(atoi(words[2]), "rank1 %d\n", getpid());
    for (;;) sched_yield();
}
"""


HOG = """
#include <pthread.h>
#include <sched.h>
void hog(void) { for (volatile int go = 1; go;); }
static void *yield(void *nothing) { for (;;) sched_yield(); return nothing; }
void crowd(int size) {
    pthread_t thread;
    while (--size > 0) pthread_create(&thread, 0, yield, 0);
    yield(0);
}
"""
NEVER_S = 1e6


def keep_the_interpreter_lock(stage: Stage, name: str) -> None:
    """Have three threads that want to run now and then, and never let them."""
    hogging = library(stage, "hog.c", HOG)

    def want_to_run() -> None:
        while True:
            threading.Event().wait(0.001)

    for _ in range(3):
        threading.Thread(target=want_to_run, daemon=True).start()
    hog = ctypes.PyDLL(hogging).hog
    stage.arrive(name)
    hog()


@patient("busy-wait", "undetermined", culprit="rank1", needs="cc", burns=("rank1",))
def native_code_that_keeps_the_interpreter_lock(stage: Stage) -> None:
    """Rank 1's main thread loops in C and never gives the interpreter lock back; rank 0 waits for it.

    A long computation in C that keeps the lock looks the same, see computation_that_a_rank_waits_for.
    """
    stage.two_ranks(lambda stage: keep_the_interpreter_lock(stage, "rank1"))


@patient("undetermined", "slow-start", "healthy", needs="cc", parts=("launcher",))
def computation_that_keeps_the_interpreter_lock(stage: Stage) -> None:
    """The same in a program that nobody waits for: it may be one long computation."""
    keep_the_interpreter_lock(stage, "launcher")


def count_for_ever(flag: list[int]) -> int:
    polls = 0
    while not flag[0]:
        polls += 1
        layer = polls % 7
        if layer > 7:
            flag[0] = 1
    return polls


@patient("busy-wait", "undetermined", culprit="rank1", burns=("rank1",))
def python_loop(stage: Stage) -> None:
    """Rank 1 goes round a loop whose condition cannot come true; rank 0 waits for it.

    Only the values in its loop tell it from a computation that rank 0 waits for: it need not be told.
    """

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        count_for_ever([0])

    stage.two_ranks(rank)


@patient("busy-wait", "undetermined", culprit="rank1", companion="burners", burns=("rank1",))
def python_loop_on_a_full_machine(stage: Stage) -> None:
    """The same while every core is busy with something else, so that the loop gets half of one.

    As in python_loop, a computation looks the same.
    """
    python_loop(stage)


@patient("busy-wait", "undetermined", culprit="rank1")
def loop_of_one_line(stage: Stage) -> None:
    """Rank 1 loops in a single line, which looks like one long native call."""

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        exec("while not flag: pass", {"flag": []})

    stage.two_ranks(rank)


@patient("slow-start", "undetermined")
def python_worker(stage: Stage) -> None:
    """Rank 1 runs plain Python, reads and allocates."""

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        while True:
            with Path("/dev/urandom").open("rb") as source:
                table = {number: str(number) for number in source.read(50_000)}
            [bytearray(1 << 16) for _ in range(64)]
            sorted(table, key=hash)

    stage.two_ranks(rank)


def walk(depth: int) -> int:
    return 1 if depth == 0 else walk(depth - 1) + walk(depth - 1)


@patient("slow-start", "undetermined", "healthy")
def python_recursion(stage: Stage) -> None:
    """Rank 1 computes through deep calls and shows nothing outside."""

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        while True:
            walk(22)

    stage.two_ranks(rank)


@patient("busy-wait", culprit="rank1")
def yields_for_ever(stage: Stage) -> None:
    """Rank 1 yields its core again and again for a flag in memory that nobody sets."""

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        while True:
            os.sched_yield()

    stage.two_ranks_in_memory(rank)


@patient("busy-wait", culprit="rank1")
def sleeps_zero(stage: Stage) -> None:
    """Rank 1 sleeps for no time at all, thousands of times a second."""

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        while True:
            time.sleep(0)

    stage.two_ranks_in_memory(rank)


@patient("busy-wait", "undetermined", culprit="rank1", needs="cc", edges=TWO_RANKS)
def native_program_yields(stage: Stage) -> None:
    """Rank 1 is no Python at all: a C program that yields for ever."""
    spinner = program(stage, "rank.c", SPINNER)
    stage.two_ranks(lambda stage: become(stage, spinner))


@patient("slow-start", "undetermined", "healthy")
def native_computation(stage: Stage) -> None:
    """Rank 1 is in a long native call without the interpreter lock, and shows nothing outside."""

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        while True:
            hashlib.pbkdf2_hmac("sha256", b"key", b"salt", 20_000_000)

    stage.two_ranks(rank)


@patient("slow-start", "undetermined", "healthy")
def native_computation_that_writes(stage: Stage) -> None:
    """Rank 1 compresses without the interpreter lock, and writes what comes out."""

    def rank(stage: Stage) -> None:
        text = os.urandom(1 << 20)
        stage.arrive("rank1")
        with Path(f"{stage.folder}/out").open("wb", buffering=0) as out:
            while True:
                out.write(zlib.compress(text, 9)[: 1 << 16])
                out.seek(0)

    stage.two_ranks(rank)


@patient("undetermined", "healthy", "slow-start")
def poll_with_a_heartbeat(stage: Stage) -> None:
    """Rank 1 polls its socket without pause, as servers do, and writes a short line ten times a second."""

    def rank(stage: Stage) -> None:
        poller = select.poll()
        poller.register(0, select.POLLIN)
        due_s = 0.0
        stage.arrive("rank1")
        with Path(f"{stage.folder}/beat").open("wb", buffering=0) as beat:
            while True:
                poller.poll(0)
                if time.monotonic() > due_s:
                    beat.write(b"alive\n")
                    due_s = time.monotonic() + 0.1

    stage.two_ranks(rank)


def poll_for_ever(listener: int) -> None:
    poller = select.poll()
    poller.register(listener, select.POLLIN)
    idle = 0
    while True:
        ready = poller.poll(0)
        if ready:
            os.read(listener, 4096)
        idle += 1


@patient("undetermined", "healthy")
def poll_without_a_request(stage: Stage) -> None:
    """Rank 1 polls its requests without pause; there are none; rank 0 waits for work from it."""
    word = stage.waiting_rank()

    def rank() -> None:
        stage.arrive("rank1")
        poll_for_ever(word.fileno())

    stage.fork(rank)
    word.close()
    stage.wait()


@patient("undetermined", "healthy")
def asyncio_that_polls(stage: Stage) -> None:
    """Rank 1 is an asyncio server that gives every task its turn without pause; none has anything to do."""

    async def look_for_work(inbox: list[bytes]) -> None:
        while not inbox:
            await asyncio.sleep(0)

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        asyncio.run(look_for_work([]))

    stage.two_ranks(rank)


@patient("busy-wait", "undetermined", culprit="rank1", burns=("rank1",))
def coroutine_that_spins(stage: Stage) -> None:
    """Rank 1's coroutine loops without ever giving way: the event loop around it is no excuse.

    As in python_loop, a computation looks the same.
    """

    async def spin() -> None:
        count_for_ever([0])

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        asyncio.run(spin())

    stage.two_ranks(rank)


@patient("undetermined", "healthy")
def native_poll_without_a_request(stage: Stage) -> None:
    """The same in native code: poll(2) with no time to wait, on a socket from which requests come."""
    word = stage.waiting_rank()

    def rank() -> None:
        native = ctypes.CDLL(None)
        entry = ctypes.create_string_buffer(word.fileno().to_bytes(4, "little") + b"\1\0\0\0")
        stage.arrive("rank1")
        while True:
            native.poll(entry, 1, 0)

    stage.fork(rank)
    word.close()
    stage.wait()


def spins_in(function: str, stage: Stage, *arguments: int) -> None:
    """Be a rank 1 that is for ever in a native function that gave the interpreter lock away."""
    native = ctypes.CDLL(library(stage, "hog.c", HOG))
    stage.arrive("rank1")
    getattr(native, function)(*arguments)


@patient("busy-wait", "undetermined", culprit="rank1", needs="cc", burns=("rank1",))
def native_loop_without_the_interpreter_lock(stage: Stage) -> None:
    """Rank 1's main thread loops in C without the interpreter lock: a long computation looks the same."""
    stage.two_ranks(lambda stage: spins_in("hog", stage))


@patient("busy-wait", "undetermined", culprit="rank1", needs="cc", burns=("rank1",), companion="burners")
def native_loop_on_a_full_machine(stage: Stage) -> None:
    """The same while every core is busy with something else."""
    stage.two_ranks(lambda stage: spins_in("hog", stage))


@patient("busy-wait", "undetermined", culprit="rank1", needs="cc", burns=("rank1",))
def threads_that_yield_on_every_core(stage: Stage) -> None:
    """Rank 1 waits as OpenMP does: one native thread more than it has cores, and each of them yields for ever."""
    own = sorted(os.sched_getaffinity(0))[:2]
    os.sched_setaffinity(0, own)
    stage.two_ranks(lambda stage: spins_in("crowd", stage, 1 + len(own)))


@patient("busy-wait", "undetermined", culprit="rank1", burns=("rank1",))
def thread_that_starves_the_main_thread(stage: Stage) -> None:
    """A thread of rank 1 loops in Python and is never asked for the interpreter lock: its main thread never runs.

    As in python_loop, a computation looks the same.
    """

    def rank(stage: Stage) -> None:
        spinning = threading.Event()

        def spin() -> None:
            spinning.set()
            count_for_ever([0])

        sys.setswitchinterval(NEVER_S)
        stage.arrive("rank1")
        threading.Thread(target=spin, daemon=True).start()
        spinning.wait()

    stage.two_ranks(rank)


@patient("busy-wait", "blocked", "undetermined", culprit="rank1", burns=("rank0",))
def rank_that_spins_for_one_that_sleeps(stage: Stage) -> None:
    """Rank 0 yields for ever for a flag of rank 1's in shared memory; rank 1 waits for a lock that it holds itself."""
    flag = mmap.mmap(-1, mmap.PAGESIZE)

    def spin() -> None:
        stage.arrive("rank0")
        while not flag[0]:
            os.sched_yield()

    def sleep() -> None:
        lock = threading.Lock()
        with lock:
            stage.arrive("rank1")
            lock.acquire()

    stage.fork(spin)
    stage.fork(sleep)
    stage.wait()


@patient("busy-wait", "undetermined", culprit="rank1", burns=("rank1",))
def loop_that_tries_a_lock(stage: Stage) -> None:
    """Rank 1 asks for a lock without waiting, again and again; it holds the lock itself.

    As in python_loop, a computation looks the same.
    """

    def rank(stage: Stage) -> None:
        lock = threading.Lock()
        with lock:
            stage.arrive("rank1")
            refused = 0
            while not lock.acquire(blocking=False):
                refused += 1
                if refused % 1000 == 0:
                    refused = 0

    stage.two_ranks(rank)
