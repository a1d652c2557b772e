"""The sick launch itself: a launcher, two ranks that meet in a barrier, a writer; run as a script, standard library.

It stands for a server whose rank 1 falls ill in its warm-up while rank 0 waits for it. Each process says on a pipe
when it has come to where it will stay.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time

PARENT_DEATH_SIGNAL = 1
ALLOW_TRACER = 0x59616D61
ANY_TRACER = ctypes.c_ulong(-1)
"""Numbers of prctl(2): PR_SET_PDEATHSIG, PR_SET_PTRACER, PR_SET_PTRACER_ANY."""

BLOCK_BYTES = 1 << 20
"""What the slow start reads at a time."""


def tie_to_parent(parent: int) -> None:
    """Die with the parent, whatever kills it; allow the stack reader in, which is a sibling, under Yama."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    prctl(ALLOW_TRACER, ANY_TRACER, 0, 0, 0)
    if os.getppid() != parent:  # it died before the first line above
        os._exit(1)


def arrive(ready: int, name: str) -> None:
    """Say who has come to where it will stay."""
    os.write(ready, f"{name} {os.getpid()}\n".encode())


def wait_for_capture() -> None:
    """Go round a loop that has no way out: what a busy-wait in a warm-up looks like.

    Its code alone proves that it never ends; one that asks for a flag looks like a computation from outside.
    """
    while True:
        pass


def wait_for_lock() -> None:
    """Take a lock twice: what a deadlock on a lock looks like."""
    lock = threading.Lock()
    with lock:
        lock.acquire()


def load_slowly() -> None:
    """Read and allocate at a steady pace: what a slow start looks like."""
    held: list[bytes] = []
    with open("/dev/zero", "rb", buffering=0) as weights:  # noqa: PTH123 - run without pathlib, to start at once
        while True:
            held = [*held[-64:], weights.read(BLOCK_BYTES)]
            time.sleep(0.05)  # the disk that makes it slow, not a wait for somebody


ILLNESSES = {
    "busy-wait": wait_for_capture,
    "blocked": wait_for_lock,
    "slow-start": load_slowly,
}


def rank_one(illness: str, ready: int) -> None:
    """Fall ill before the barrier."""
    sys.stdout.write(f"[rank 1] warm-up begins ({illness})\n")
    sys.stdout.flush()
    arrive(ready, "rank1")
    ILLNESSES[illness]()


def rank_zero(barrier: socket.socket, ready: int) -> None:
    """Come to the barrier and wait for rank 1."""
    sys.stdout.write("[rank 0] warm-up done, waiting for rank 1\n")
    sys.stdout.flush()
    arrive(ready, "rank0")
    barrier.recv(1)


def writer(texts: int, ready: int) -> None:
    """Wait for texts to write, as a detokenizer does."""
    arrive(ready, "writer")
    while text := os.read(texts, 4096):
        os.write(1, text)


def launcher(illness: str, ready: int) -> None:
    """Start the three others and wait for them."""
    ours, theirs = socket.socketpair()
    reading, writing = os.pipe()
    sys.stdout.write("[launcher] starting 2 ranks\n")
    sys.stdout.flush()
    children = [
        _start("rank0", illness, ready, ours.fileno(), writing),
        _start("rank1", illness, ready, theirs.fileno(), writing),
        _start("writer", illness, ready, reading),
    ]
    for descriptor in (ours.detach(), theirs.detach(), reading, writing):
        os.close(descriptor)
    arrive(ready, "launcher")
    for child in children:
        child.wait()


def _start(part: str, illness: str, ready: int, *descriptors: int) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-IS", __file__, part, illness, "--parent", str(os.getpid())]
    argv += ["--ready", str(ready), "--own", str(descriptors[0])]
    return subprocess.Popen(argv, pass_fds=(ready, *descriptors), stdin=subprocess.DEVNULL)


def main() -> None:
    """Be one process of the launch."""
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=["launcher", "rank0", "rank1", "writer"])
    parser.add_argument("illness", choices=sorted(ILLNESSES))
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--ready", type=int, required=True)
    parser.add_argument("--own", type=int, default=-1)
    given = parser.parse_args()
    tie_to_parent(given.parent)
    if given.part == "launcher":
        launcher(given.illness, given.ready)
    elif given.part == "rank0":
        rank_zero(socket.socket(fileno=given.own), given.ready)
    elif given.part == "rank1":
        rank_one(given.illness, given.ready)
    else:
        writer(given.own, given.ready)


if __name__ == "__main__":
    main()
