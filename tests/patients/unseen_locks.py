"""Unseen patients that wait for locks, semaphores and conditions that nobody will ever give them."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from tests.patients.locks import take_twice
from tests.patients.stage import Stage, become, get_on, patient
from tests.patients.unseen_props import Act, arrive_together, become_script, build, fork_together, log_to

FORK = multiprocessing.get_context("fork")

FORKED_MUTEX = r"""
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static void *hold(void *nothing) {
    pthread_mutex_lock(&lock);
    pthread_barrier_wait(&both);
    pthread_barrier_wait(&both);
    pthread_mutex_unlock(&lock);
    return nothing;
}
int main(int count, char **words) {
    pthread_t holder;
    int self = getpid();
    begin(words);
    pthread_barrier_init(&both, 0, 2);
    pthread_create(&holder, 0, hold, 0);
    pthread_barrier_wait(&both);
    pid_t worker = fork();
    if (!worker) {
        tie(self);
        arrive("worker");
        pthread_mutex_lock(&lock);
        _exit(0);
    }
    pthread_barrier_wait(&both);
    pthread_join(holder, 0);
    arrive("rank1");
    waitpid(worker, 0, 0);
}
"""

SIGNAL_HANDLER = r"""
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void flush_statistics(int number) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}
int main(int count, char **words) {
    begin(words);
    signal(SIGUSR1, flush_statistics);
    pthread_mutex_lock(&lock);
    arrive("rank1");
    raise(SIGUSR1);
    pthread_mutex_unlock(&lock);
}
"""

CONDITION = r"""
#include <condition_variable>
#include <mutex>
#include <thread>
static std::mutex lock;
static std::condition_variable filled;
static bool full = false;
static void consume() {
    std::unique_lock<std::mutex> held(lock);
    filled.wait(held, [] { return full; });
}
int main(int count, char **words) {
    begin(words);
    std::thread consumer(consume);
    arrive("rank1");
    consumer.join();
}
"""

THREAD_AT_EXIT = """
import os, queue, sys, threading
work = queue.Queue()
threading.Thread(target=work.get).start()
os.write(int(sys.argv[1]), f"rank1 {os.getpid()}\\n".encode())
"""

RAISING_THREAD = """
import os, queue, sys, threading
results = queue.Queue()
def load_shard():
    raise RuntimeError("shard 3 of 8 has the wrong shape")
    results.put(1)
thread = threading.Thread(target=load_shard)
thread.start()
thread.join()
os.write(int(sys.argv[1]), f"rank1 {os.getpid()}\\n".encode())
results.get()
"""


@patient("blocked", parts=("launcher", "rank0", "rank1", "worker"), culprit="worker")
def lock_held_across_a_fork(stage: Stage) -> None:
    """Rank 1 forked a worker while a thread held a lock; in the worker that thread is not, and rank 1 waits for it."""

    def work(lock: threading.Lock) -> None:
        stage.arrive("worker")
        with lock:
            pass

    def hold(lock: threading.Lock, held: threading.Event, forked: threading.Event) -> None:
        with lock:
            held.set()
            forked.wait()

    def rank(stage: Stage) -> None:
        lock, held, forked = threading.Lock(), threading.Event(), threading.Event()
        thread = threading.Thread(target=hold, args=(lock, held, forked))
        thread.start()
        held.wait()
        pid = stage.fork(work, lock)
        forked.set()
        thread.join()
        stage.arrive("rank1")
        os.waitpid(pid, 0)

    stage.two_ranks(rank)


@patient("blocked", parts=("launcher", "rank0", "rank1", "worker"), culprit="worker", needs="cc")
def mutex_held_across_a_fork(stage: Stage) -> None:
    """The same in C: the mutex in the worker names a thread that lived in rank 1 as its owner; rank 1 waits for it."""
    program = build(stage, FORKED_MUTEX)
    stage.two_ranks(lambda stage: become(stage, program))


@patient("blocked", "undetermined", culprit="rank1")
def semaphore_that_nobody_posts(stage: Stage) -> None:
    """Rank 1 waits for a semaphore whose other owners, rank 0 and the launcher, both wait for rank 1."""
    semaphore = FORK.Semaphore(0)

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        semaphore.acquire()

    stage.two_ranks(rank)


def lock_file(path: str) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


@patient("blocked", parts=("launcher", "ring"), culprit="ring")
def ring_of_three_file_locks(stage: Stage) -> None:
    """Each of three ranks holds a file lock and waits for the next one's: one of them has to give way."""

    def rank(number: int) -> Act:
        def act(meet: Callable[[], None]) -> None:
            lock_file(f"{stage.folder}/lock{number}")
            meet()
            lock_file(f"{stage.folder}/lock{(number + 1) % 3}")

        return act

    arrive_together(stage, fork_together(stage, *(("ring", rank(number)) for number in range(3))))
    stage.wait()


@patient("blocked", parts=("launcher", "rank0", "rank1", "rank2"), culprit="rank2")
def chain_of_three_file_locks(stage: Stage) -> None:
    """Rank 0 waits for rank 1's file lock, rank 1 for rank 2's, and rank 2 for a lock that it holds itself."""

    def rank(hold: str, want: str) -> Act:
        def act(meet: Callable[[], None]) -> None:
            if hold:
                lock_file(f"{stage.folder}/{hold}")
            meet()
            lock_file(f"{stage.folder}/{want}") if want else take_twice(threading.Lock())

        return act

    ranks = ("rank0", rank("", "index")), ("rank1", rank("index", "cache")), ("rank2", rank("cache", ""))
    arrive_together(stage, fork_together(stage, *ranks))
    stage.wait()


@patient("blocked", culprit="rank1")
def record_lock_of_a_stopped_rank(stage: Stage) -> None:
    """Rank 0 waits for the record lock (fcntl, not flock) of rank 1, which a signal has stopped."""
    path = Path(stage.folder) / "records"
    path.write_bytes(bytes(100))

    def want(meet: Callable[[], None]) -> None:
        with path.open("r+b") as file:
            meet()
            fcntl.lockf(file, fcntl.LOCK_EX, 10, 20)

    def hold(meet: Callable[[], None]) -> None:
        with path.open("r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX, 50, 0)
            meet()
            get_on()

    parts = fork_together(stage, ("rank0", want), ("rank1", hold))
    os.kill(stage.children[1], signal.SIGSTOP)
    os.waitpid(stage.children[1], os.WUNTRACED)
    arrive_together(stage, parts)
    stage.wait()


@patient("blocked", culprit="rank1", needs="cc")
def signal_handler_that_wants_the_lock(stage: Stage) -> None:
    """Rank 1, in C, was interrupted while it held a mutex, and the signal's handler waits for that very mutex."""
    program = build(stage, SIGNAL_HANDLER)
    stage.two_ranks(lambda stage: become(stage, program))


@patient("blocked", culprit="rank1", needs="c++")
def condition_that_nobody_signals(stage: Stage) -> None:
    """Rank 1, in C++, joins a thread that waits for a condition; it has no third thread that could signal it."""
    program = build(stage, CONDITION, "c++")
    stage.two_ranks(lambda stage: become(stage, program))


@patient("blocked", culprit="rank1")
def thread_that_outlives_the_program(stage: Stage) -> None:
    """Rank 1 came to its end and joins a thread that waits on a queue that nobody can fill any more."""
    stage.two_ranks(lambda stage: become_script(stage, THREAD_AT_EXIT))


@patient("blocked", "crashed", culprit="rank1")
def result_of_a_thread_that_raised(stage: Stage) -> None:
    """Rank 1 waits for the result of a thread that raised, which stands in its log, and is gone."""

    def rank(stage: Stage) -> None:
        log_to(f"{stage.folder}/rank1.log")
        become_script(stage, RAISING_THREAD)

    stage.two_ranks(rank)
