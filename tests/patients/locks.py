"""Patients that wait for a lock: one that nobody can release, and ones that somebody will."""

from __future__ import annotations

import ctypes
import fcntl
import multiprocessing
import socket
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeAlias

from tests.patients.build import program
from tests.patients.stage import TWO_RANKS, Stage, become, get_on, patient

PythonLock: TypeAlias = AbstractContextManager[bool]

LONG_S = 3600.0

CROSSWISE = r"""
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_barrier_t both;
static void *take(void *first) {
    pthread_mutex_lock(&locks[(long)first]);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&locks[!(long)first]);
    return 0;
}
int main(int count, char **words) {
    pthread_t other;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (count != 3 || getppid() != atoi(words[1])) return 1;
    pthread_barrier_init(&both, 0, 2);
    pthread_create(&other, 0, take, (void *)1);
    dprintf(atoi(words[2]), "rank1 %d\n", getpid());
    take((void *)0);
}
"""


def take_twice(lock: threading.Lock) -> None:
    with lock:
        lock.acquire()


@patient("blocked", culprit="rank1", edges=TWO_RANKS)
def lock_taken_twice(stage: Stage) -> None:
    """Rank 1's only thread waits for a lock that it holds itself; rank 0 waits for rank 1."""

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        take_twice(threading.Lock())

    stage.two_ranks(rank)


def take_in_order(first: PythonLock, second: PythonLock, both: threading.Barrier, done: threading.Event) -> None:
    with first:
        both.wait()
        done.set()
        with second:
            pass


def take_crosswise(stage: Stage, one: PythonLock, other: PythonLock) -> None:
    both = threading.Barrier(2)
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


@patient("blocked", culprit="rank1", edges=TWO_RANKS)
def two_locks_crosswise(stage: Stage) -> None:
    """Two threads of rank 1 hold one lock each and wait for the other's; its main thread waits for both threads."""
    stage.two_ranks(lambda stage: take_crosswise(stage, threading.Lock(), threading.Lock()))


@patient("blocked", culprit="rank1", edges=TWO_RANKS)
def two_rlocks_crosswise(stage: Stage) -> None:
    """The same with locks that their holder may take again."""
    stage.two_ranks(lambda stage: take_crosswise(stage, threading.RLock(), threading.RLock()))


@patient("blocked", culprit="rank1", needs="cc", edges=(*TWO_RANKS, ("rank1", "rank1", "futex")))
def two_mutexes_crosswise(stage: Stage) -> None:
    """Rank 1 is a C program, two threads of which hold one mutex each and wait for the other's."""
    crosswise = program(stage, "rank.c", CROSSWISE)
    stage.two_ranks(lambda stage: become(stage, crosswise))


@patient("blocked", culprit="rank1", edges=TWO_RANKS)
def interpreter_lock_and_a_mutex_crosswise(stage: Stage) -> None:
    """One thread of rank 1 holds a mutex and wants the interpreter lock, the other holds that and wants the mutex."""

    def rank(stage: Stage) -> None:
        mutex = ctypes.create_string_buffer(64)
        held = threading.Event()
        letting_go, keeping = ctypes.CDLL(None), ctypes.PyDLL(None)

        def hold() -> None:
            letting_go.pthread_mutex_lock(mutex)
            held.set()
            while True:
                time.sleep(0)

        threading.Thread(target=hold, daemon=True).start()
        held.wait()
        stage.arrive("rank1")
        keeping.pthread_mutex_lock(mutex)

    stage.two_ranks(rank)


@patient("blocked", culprit="rank1", edges=TWO_RANKS)
def lock_of_a_dead_thread(stage: Stage) -> None:
    """Rank 1's main thread waits for a lock whose holder ended without releasing it."""

    def rank(stage: Stage) -> None:
        lock = threading.RLock()
        thread = threading.Thread(target=lock.acquire)
        thread.start()
        thread.join()
        stage.arrive("rank1")
        lock.acquire()

    stage.two_ranks(rank)


@patient(
    "blocked",
    culprit="lock-holder",
    companion="lock-holder",
    edges=(*TWO_RANKS, ("rank1", "lock-holder", "file-lock")),
)
def holder_waits_for_a_file_lock(stage: Stage) -> None:
    """Rank 1's main thread waits for a lock whose holder waits for a file lock of an unrelated process."""

    def hold(lock: threading.Lock, held: threading.Event) -> None:
        with lock, (Path(stage.folder) / "lock").open("w") as file:
            held.set()
            fcntl.flock(file, fcntl.LOCK_EX)

    def rank(stage: Stage) -> None:
        (Path(stage.folder) / "word").read_bytes()
        lock, held = threading.Lock(), threading.Event()
        threading.Thread(target=hold, args=(lock, held), daemon=True).start()
        held.wait()
        stage.arrive("rank1")
        with lock:
            pass

    stage.two_ranks(rank)


@patient("undetermined", "healthy", parts=("launcher",))
def leader_that_accepts(stage: Stage) -> None:
    """A server whose threads take turns: one holds the lock and waits in accept(2), the others wait for the lock."""
    listener, lock = socket.create_server(("127.0.0.1", 0)), threading.Lock()

    def serve() -> None:
        with lock:
            listener.accept()

    threads = [threading.Thread(target=serve) for _ in range(4)]
    for thread in threads:
        thread.start()
    stage.arrive("launcher")
    for thread in threads:
        thread.join()


def hold_and(lock: threading.Lock, held: threading.Event, act: Callable[[], object]) -> None:
    with lock:
        held.set()
        act()


def wait_for_a_holder_that(stage: Stage, act: Callable[[], object]) -> None:
    lock, held = threading.Lock(), threading.Event()
    threading.Thread(target=hold_and, args=(lock, held, act), daemon=True).start()
    held.wait()
    stage.arrive("rank1")
    with lock:
        pass


@patient("undetermined", "slow-start", "healthy")
def lock_held_in_a_with_block_by_a_working_thread(stage: Stage) -> None:
    """Rank 1's main thread waits for a lock whose holder, which can be told, reads on and on."""
    stage.two_ranks(lambda stage: wait_for_a_holder_that(stage, get_on))


@patient("undetermined", "slow-start", "healthy")
def lock_held_in_a_with_block_by_a_sleeping_thread(stage: Stage) -> None:
    """Rank 1's main thread waits for a lock whose holder, which can be told, sleeps for a time."""
    stage.two_ranks(lambda stage: wait_for_a_holder_that(stage, lambda: time.sleep(LONG_S)))


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
