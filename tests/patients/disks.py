"""Patients whose disk is full, or who may not write as much as they want to."""

from __future__ import annotations

import contextlib
import ctypes
import os
import queue
import resource
import signal
import threading
from pathlib import Path

from tests.patients.stage import TWO_RANKS, Stage, patient

NEW_MOUNTS = 0x00020000
"""CLONE_NEWNS of unshare(2)."""

PRIVATE_MOUNTS = 1 << 18 | 1 << 14
"""MS_PRIVATE and MS_REC of mount(2)."""

DISK, BLOCK = b"size=64k", b"x" * 4096


@patient("busy-wait", "undetermined", culprit="rank1", burns=("rank1",), edges=TWO_RANKS[:1])
def full_disk_tried_again_and_again(stage: Stage) -> None:
    """Rank 1 writes to a full disk, is refused, and tries again at once, for ever."""

    def rank(stage: Stage) -> None:
        disk = os.open("/dev/full", os.O_WRONLY)
        stage.arrive("rank1")
        while True:
            with contextlib.suppress(OSError):
                os.write(disk, BLOCK)
                break

    stage.two_ranks(rank)


def small_disk(folder: str) -> None:
    """Give this process a disk of its own that is soon full; it goes away with it."""
    native = ctypes.CDLL(None, use_errno=True)
    done = native.unshare(NEW_MOUNTS) or native.mount(None, b"/", None, PRIVATE_MOUNTS, None)
    if done or native.mount(b"tmpfs", folder.encode(), b"tmpfs", 0, DISK):
        raise OSError(ctypes.get_errno(), "no disk of its own")


@patient("blocked", "crashed", "hung", "undetermined", culprit="rank1", needs="root")
def writer_thread_that_a_full_disk_ended(stage: Stage) -> None:
    """Rank 1's writing thread ended with "No space left on device"; its main thread waits for the thread's results."""

    def write(results: queue.SimpleQueue[int], full: threading.Event) -> None:
        try:
            with Path(stage.folder, "weights").open("wb", buffering=0) as file:
                while True:
                    file.write(BLOCK)
        finally:
            full.set()

    def rank(stage: Stage) -> None:
        small_disk(stage.folder)
        results: queue.SimpleQueue[int] = queue.SimpleQueue()
        full = threading.Event()
        threading.excepthook = lambda _: None
        writer = threading.Thread(target=write, args=(results, full))
        writer.start()
        full.wait()
        writer.join()
        stage.arrive("rank1")
        results.get()

    stage.two_ranks(rank)


@patient("crashed", culprit="rank1")
def rank_that_may_not_write_so_much(stage: Stage) -> None:
    """Rank 1 was killed by SIGXFSZ when its file grew past the limit; nobody has reaped it and rank 0 waits for it."""

    def write() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(BLOCK), len(BLOCK)))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        file = os.open(f"{stage.folder}/weights", os.O_WRONLY | os.O_CREAT)
        while True:
            os.write(file, BLOCK)

    word = stage.waiting_rank()
    pid = stage.fork(write)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    stage.arrive("rank1", pid)
    stage.wait()
    word.close()
