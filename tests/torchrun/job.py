"""A plain torch.distributed job on the CPU: what its rank 1 does while rank 0 waits for it, by the first argument."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist

PACE_S = 0.02


def here(folder: str) -> None:
    """Say that this rank has come to where it will stay."""
    Path(folder, f"rank{dist.get_rank()}").touch()


def never_comes() -> None:
    """Wait for a lock that nobody releases."""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def loops() -> None:
    """Go round in Python for a flag that nobody sets."""
    turns, flag = 0, []
    while not flag:
        turns += 1
        if turns < 0:
            flag.append(turns)


def reads_slowly() -> None:
    """Get on, at a slow and steady pace."""
    with Path("/dev/zero").open("rb", buffering=0) as source:
        while True:
            source.read(1 << 16)
            time.sleep(PACE_S)


def stops() -> None:
    """Be stopped, as by a debugger that left."""
    os.kill(os.getpid(), signal.SIGSTOP)


ACTS: dict[str, Callable[[], None]] = {
    "absent": never_comes,
    "spin": loops,
    "slow": reads_slowly,
    "stopped": stops,
}


def trains(folder: str) -> None:
    """Do steps for ever, as a job that is well: work on memory, then an all_reduce."""
    grown = 0
    while True:
        batch = torch.randn(1 << 20) + grown
        dist.all_reduce(batch)
        grown += 1
        if grown == 2:
            here(folder)


def main() -> None:
    act, folder = sys.argv[1:]
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: nothing outlives its torchrun
    dist.init_process_group("gloo")
    if act == "healthy":
        trains(folder)
    here(folder)
    if dist.get_rank() == 1:
        ACTS[act]()
    dist.barrier()


if __name__ == "__main__":
    main()
