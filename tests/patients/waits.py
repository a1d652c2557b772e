"""Patients that wait for another process: for ever, for a while, and because they have nothing to do."""

from __future__ import annotations

import fcntl
import os
import socket
import threading
from pathlib import Path

from tests.patients.stage import Stage, patient

DOWNLOADED_BYTES = 1 << 16


@patient("blocked", culprit="lock-holder", companion="lock-holder")
def file_lock_held_outside(stage: Stage) -> None:
    """The launcher waits for rank 0, rank 0 for rank 1, rank 1 for a file lock that an unrelated process holds."""

    def rank(stage: Stage) -> None:
        (Path(stage.folder) / "word").read_bytes()
        with (Path(stage.folder) / "lock").open("w") as lock:
            stage.arrive("rank1")
            fcntl.flock(lock, fcntl.LOCK_EX)

    stage.two_ranks(rank)


@patient("blocked", culprit="rank1")
def launcher_joins_who_waits_for_it(stage: Stage) -> None:
    """The launcher waits for rank 1's end, rank 1 for a word of the launcher's; rank 0 waits for rank 1."""
    reading, writing = os.pipe()

    def rank(stage: Stage) -> None:
        os.close(writing)
        stage.arrive("rank1")
        os.read(reading, 1)

    word = stage.waiting_rank()
    pid = stage.fork(rank, stage)
    word.close()
    os.close(reading)
    stage.arrive("launcher")
    os.waitpid(pid, 0)


@patient("undetermined", "slow-start", "healthy", companion="slow-sender")
def download_over_tcp(stage: Stage) -> None:
    """Rank 1 receives 50 KB/s over TCP, which no counter of /proc shows; rank 0 waits for it."""

    def rank(stage: Stage) -> None:
        port = int((Path(stage.folder) / "word").read_bytes())
        source = socket.create_connection(("127.0.0.1", port))
        stage.arrive("rank1")
        while source.recv(DOWNLOADED_BYTES):
            pass

    stage.two_ranks(rank)


@patient("undetermined", "slow-start", "healthy")
def two_servers_that_talk(stage: Stage) -> None:
    """Two idle ranks wait for each other's next word, while a thread of one waits for requests and will speak then."""
    ours, theirs = socket.socketpair()

    def wait_for_rank_one() -> None:
        theirs.close()
        stage.arrive("rank0")
        ours.recv(1)

    def serve() -> None:
        ours.close()
        server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=server.accept, daemon=True).start()
        stage.arrive("rank1")
        theirs.recv(1)

    stage.fork(wait_for_rank_one)
    stage.fork(serve)
    ours.close()
    theirs.close()
    stage.wait()
