"""Patients whose main thread waits in native code for a lock of the C or C++ library that nobody will release."""

from __future__ import annotations

import ctypes
import mmap
import os
import threading

from tests.patients.build import library, program
from tests.patients.stage import TWO_RANKS, Stage, become, patient

ROOM_BYTES = 128
"""More than any of glibc's locks needs (pthread_mutex_t 40, pthread_rwlock_t 56, pthread_cond_t 48, sem_t 32)."""

CROSSWISE = r"""
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <pthread.h>
#include <sys/prctl.h>
#include <thread>
#include <unistd.h>
static std::mutex locks[2];
static pthread_barrier_t both;
static void take(int first, int ready) {
    std::lock_guard<std::mutex> one(locks[first]);
    pthread_barrier_wait(&both);
    if (ready >= 0) dprintf(ready, "rank1 %d\n", getpid());
    std::lock_guard<std::mutex> other(locks[!first]);
}
int main(int count, char **words) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (count != 3 || getppid() != atoi(words[1])) return 1;
    pthread_barrier_init(&both, 0, 2);
    std::thread other(take, 1, -1);
    take(0, atoi(words[2]));
}
"""

ROBUST = """
#include <pthread.h>
int make(pthread_mutex_t *lock) {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    return pthread_mutex_init(lock, &kind);
}
"""


@patient("blocked", culprit="rank1", edges=TWO_RANKS)
def mutex_of_a_dead_thread(stage: Stage) -> None:
    """Rank 1 waits for a pthread mutex whose holder ended without releasing it."""

    def rank(stage: Stage) -> None:
        native, lock = ctypes.CDLL(None), ctypes.create_string_buffer(ROOM_BYTES)
        thread = threading.Thread(target=native.pthread_mutex_lock, args=(lock,))
        thread.start()
        thread.join()
        stage.arrive("rank1")
        native.pthread_mutex_lock(lock)

    stage.two_ranks(rank)


@patient("blocked", culprit="rank1", edges=TWO_RANKS)
def writer_behind_its_own_reader(stage: Stage) -> None:
    """Rank 1 holds a read-write lock for reading and asks for it for writing, which has to wait for itself."""

    def rank(stage: Stage) -> None:
        native, lock = ctypes.CDLL(None), ctypes.create_string_buffer(ROOM_BYTES)
        native.pthread_rwlock_rdlock(lock)
        stage.arrive("rank1")
        native.pthread_rwlock_wrlock(lock)

    stage.two_ranks(rank)


@patient("blocked", culprit="rank1", edges=TWO_RANKS)
def readers_behind_a_dead_writer(stage: Stage) -> None:
    """Rank 1 asks for a read-write lock for reading whose writer ended without releasing it."""

    def rank(stage: Stage) -> None:
        native, lock = ctypes.CDLL(None), ctypes.create_string_buffer(ROOM_BYTES)
        thread = threading.Thread(target=native.pthread_rwlock_wrlock, args=(lock,))
        thread.start()
        thread.join()
        stage.arrive("rank1")
        native.pthread_rwlock_rdlock(lock)

    stage.two_ranks(rank)


@patient("blocked", culprit="rank1", needs="c++", edges=(*TWO_RANKS, ("rank1", "rank1", "futex")))
def two_cpp_mutexes_crosswise(stage: Stage) -> None:
    """Rank 1 is a C++ program, two threads of which hold one std::mutex each and wait for the other's."""
    crosswise = program(stage, "rank.cc", CROSSWISE)
    stage.two_ranks(lambda stage: become(stage, crosswise))


@patient(
    "blocked",
    culprit="rank0",
    also=("rank1",),
    needs="cc",
    edges=(("rank0", "rank1", "socket"), ("rank1", "rank0", "futex")),
)
def robust_mutex_of_a_rank_that_waits(stage: Stage) -> None:
    """Rank 0 holds a robust mutex that both share and waits for a word of rank 1; rank 1 waits for the mutex."""
    native, made = ctypes.CDLL(None), ctypes.CDLL(library(stage, "robust.c", ROBUST))
    memory = mmap.mmap(-1, mmap.PAGESIZE)
    lock = ctypes.c_char.from_buffer(memory)
    made.make(ctypes.byref(lock))
    held_read, held_write = os.pipe()

    def holder() -> None:
        native.pthread_mutex_lock(ctypes.byref(lock))
        os.write(held_write, b"!")

    def rank(stage: Stage) -> None:
        os.read(held_read, 1)
        stage.arrive("rank1")
        native.pthread_mutex_lock(ctypes.byref(lock))

    word = stage.waiting_rank(holder)
    stage.fork(rank, stage)
    word.close()
    os.close(held_write)
    os.close(held_read)
    stage.wait()


@patient("blocked", "undetermined", culprit="rank1", edges=TWO_RANKS)
def condition_without_a_signal(stage: Stage) -> None:
    """Rank 1's only thread waits in pthread_cond_wait; there is nobody who could signal."""

    def rank(stage: Stage) -> None:
        native = ctypes.CDLL(None)
        lock, condition = (ctypes.create_string_buffer(ROOM_BYTES) for _ in range(2))
        native.pthread_mutex_lock(lock)
        stage.arrive("rank1")
        native.pthread_cond_wait(condition, lock)

    stage.two_ranks(rank)


@patient("blocked", "undetermined", culprit="rank1", edges=TWO_RANKS)
def semaphore_that_nobody_posts(stage: Stage) -> None:
    """Rank 1's only thread waits in sem_wait for a semaphore of its own memory."""

    def rank(stage: Stage) -> None:
        native, semaphore = ctypes.CDLL(None), ctypes.create_string_buffer(ROOM_BYTES)
        native.sem_init(semaphore, 0, 0)
        stage.arrive("rank1")
        native.sem_wait(semaphore)

    stage.two_ranks(rank)


@patient("blocked", "undetermined", culprit="rank1", edges=TWO_RANKS)
def native_barrier_short_of_a_thread(stage: Stage) -> None:
    """Two threads of rank 1 wait in a pthread barrier for a third that was never started."""

    def rank(stage: Stage) -> None:
        native, barrier = ctypes.CDLL(None), ctypes.create_string_buffer(ROOM_BYTES)
        native.pthread_barrier_init(barrier, None, 3)
        threading.Thread(target=native.pthread_barrier_wait, args=(barrier,), daemon=True).start()
        stage.arrive("rank1")
        native.pthread_barrier_wait(barrier)

    stage.two_ranks(rank)
