"""Unseen patients that burn CPU in vain."""

from __future__ import annotations

import mmap
import re
import socket
import threading
from pathlib import Path

from tests.patients.stage import Stage, become, patient
from tests.patients.unseen_props import NOBODYS_ADDRESS, build

FLAG = r"""
int main(int count, char **words) {
    begin(words);
    int file = open(words[3], O_RDWR);
    volatile int *flag = (volatile int *)mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    arrive("rank1");
    while (!*flag);
}
"""

SPIN_LOCK = r"""
#include <atomic>
#include <thread>
static std::atomic_flag lock = ATOMIC_FLAG_INIT;
static void release_blocks() {
    while (lock.test_and_set(std::memory_order_acquire));
    lock.clear(std::memory_order_release);
}
int main(int count, char **words) {
    begin(words);
    lock.test_and_set();
    std::thread evictor(release_blocks);
    arrive("rank1");
    evictor.join();
    lock.clear();
}
"""


@patient("busy-wait", "undetermined", culprit="rank1", needs="cc")
def flag_in_shared_memory(stage: Stage) -> None:
    """Rank 1, in C, reads a flag in shared memory again and again; nobody else has it open; rank 0 waits for rank 1."""
    program, path = build(stage, FLAG), Path(stage.folder) / "flag"
    path.write_bytes(bytes(mmap.PAGESIZE))
    stage.two_ranks(lambda stage: become(stage, program, str(path)))


@patient("busy-wait", "undetermined", culprit="rank1", needs="c++")
def spin_lock_whose_holder_waits(stage: Stage) -> None:
    """Rank 1's main thread holds a spin lock and joins the thread that spins for it; rank 0 waits for rank 1."""
    program = build(stage, SPIN_LOCK, "c++")
    stage.two_ranks(lambda stage: become(stage, program))


def wait_for_flag(flag: mmap.mmap) -> int:
    turns = 0
    while flag[0] == 0:
        turns += 1
        if turns == 1000:
            turns = 0
    return flag[0]


@patient("busy-wait", "undetermined", culprit="rank1", burns=("rank1",))
def python_flag_in_shared_memory(stage: Stage) -> None:
    """Rank 1 spins in Python on a flag of shared memory; rank 0 has it too, waits for rank 1, and never sets it."""
    flag = mmap.mmap(-1, mmap.PAGESIZE)

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        wait_for_flag(flag)

    stage.two_ranks_in_memory(rank)


def try_again(lock: threading.Lock) -> int:
    tries = 0
    with lock:
        while not lock.acquire(blocking=False):
            tries += 1
            if tries % 100 == 0:
                tries += 1
    return tries


@patient("busy-wait", "undetermined", culprit="rank1", burns=("rank1",))
def lock_that_is_tried_for_ever(stage: Stage) -> None:
    """Rank 1 tries without pause to take a lock that it holds itself; rank 0 waits for rank 1."""

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        try_again(threading.Lock())

    stage.two_ranks(rank)


def look_for(path: Path) -> None:
    looks = 0
    while True:
        if path.exists():
            return
        looks += 1


@patient("busy-wait", "undetermined", culprit="rank1", burns=("rank1",))
def file_that_is_looked_for_without_pause(stage: Stage) -> None:
    """Rank 1 asks without pause whether a file is there that nobody will make; rank 0 waits for rank 1."""

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        look_for(Path(stage.folder) / "rank2.ready")

    stage.two_ranks(rank)


@patient("busy-wait", "undetermined", culprit="rank1")
def expression_that_backtracks(stage: Stage) -> None:
    """Rank 1 matches a regular expression that backtracks 2^60 times in one native call; rank 0 waits for rank 1."""

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        re.match(r"(a+)+$", "a" * 60 + "b")

    stage.two_ranks(rank)


def connect_to(address: tuple[str, int]) -> socket.socket:
    while True:
        try:
            return socket.create_connection(address)
        except ConnectionRefusedError:
            continue


@patient("busy-wait", "undetermined", culprit="rank1")
def address_where_nobody_listens(stage: Stage) -> None:
    """Rank 1 connects without pause to an address that refuses it each time; rank 0 waits for rank 1."""

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        connect_to(NOBODYS_ADDRESS)

    stage.two_ranks(rank)
