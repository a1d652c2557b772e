"""Patients that wait for another process: for ever, for a while, and because they have nothing to do."""

from __future__ import annotations

import fcntl
import os
import socket
import threading
import time
from pathlib import Path

from tests.patients.stage import SEVERAL_S, TWO_RANKS, Stage, get_on, patient

DOWNLOADED_BYTES = 1 << 16


@patient(
    "blocked",
    culprit="lock-holder",
    companion="lock-holder",
    edges=(*TWO_RANKS, ("rank1", "lock-holder", "file-lock")),
)
def file_lock_held_outside(stage: Stage) -> None:
    """The launcher waits for rank 0, rank 0 for rank 1, rank 1 for a file lock that an unrelated process holds."""

    def rank(stage: Stage) -> None:
        (Path(stage.folder) / "word").read_bytes()
        with (Path(stage.folder) / "lock").open("w") as lock:
            stage.arrive("rank1")
            fcntl.flock(lock, fcntl.LOCK_EX)

    stage.two_ranks(rank)


@patient("blocked", culprit="launcher", edges=(("launcher", "rank1", "child"), ("rank1", "launcher", "pipe")))
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


@patient(
    "blocked",
    culprit="record-lock-holder",
    companion="record-lock-holder",
    edges=(*TWO_RANKS, ("rank1", "record-lock-holder", "file-lock")),
)
def record_lock_held_outside(stage: Stage) -> None:
    """The same with a lock of fcntl(2), which belongs to a process and not to an open file."""

    def rank(stage: Stage) -> None:
        (Path(stage.folder) / "word").read_bytes()
        with (Path(stage.folder) / "lock").open("w") as lock:
            stage.arrive("rank1")
            fcntl.lockf(lock, fcntl.LOCK_EX)

    stage.two_ranks(rank)


@patient("slow-start", "undetermined", "healthy", companion="record-lock-holder", goes_on=True)
def flock_beside_a_record_lock(stage: Stage) -> None:
    """Rank 1 takes a lock of flock(2) and works, while another process holds one of fcntl(2), which is no obstacle."""

    def rank(stage: Stage) -> None:
        (Path(stage.folder) / "word").read_bytes()
        with (Path(stage.folder) / "lock").open("w") as lock:
            stage.arrive("rank1")
            fcntl.flock(lock, fcntl.LOCK_EX)
            get_on(stage.beat)

    stage.two_ranks(rank)


@patient(
    "blocked",
    culprit="rank0",
    also=("rank1",),
    edges=(*TWO_RANKS, ("rank1", "rank0", "file-lock")),
)
def file_lock_of_a_rank_that_waits(stage: Stage) -> None:
    """Rank 0 holds a file lock and waits for a word of rank 1; rank 1 waits for the lock."""
    path, held_read, held_write = Path(stage.folder, "lock"), *os.pipe()

    def hold() -> None:
        fcntl.flock(os.open(path, os.O_WRONLY | os.O_CREAT), fcntl.LOCK_EX)
        os.write(held_write, b"!")

    def rank(stage: Stage) -> None:
        os.read(held_read, 1)
        with path.open("w") as lock:
            stage.arrive("rank1")
            fcntl.flock(lock, fcntl.LOCK_EX)

    word = stage.waiting_rank(hold)
    stage.fork(rank, stage)
    word.close()
    stage.wait()


@patient(
    "blocked",
    "undetermined",
    culprit="silent-server",
    companion="silent-server",
    edges=(*TWO_RANKS, ("rank1", "silent-server", "tcp")),
)
def server_outside_that_never_answers(stage: Stage) -> None:
    """Rank 1 has asked a TCP server outside the launch, which took the question and never answers."""

    def rank(stage: Stage) -> None:
        port = int((Path(stage.folder) / "word").read_bytes())
        source = socket.create_connection(("127.0.0.1", port))
        source.sendall(b"weights?")
        stage.arrive("rank1")
        source.recv(DOWNLOADED_BYTES)

    stage.two_ranks(rank)


@patient(
    "blocked",
    "undetermined",
    culprit="rank0",
    also=("rank1",),
    edges=(("rank0", "rank1", "socket"), ("rank1", "rank0", "socket")),
)
def two_ranks_that_wait_for_each_other(stage: Stage) -> None:
    """Each of two ranks waits on a unix socket for the other's next word."""
    ours, theirs = socket.socketpair()

    def hear(name: str, own: socket.socket, other: socket.socket) -> None:
        other.close()
        stage.arrive(name)
        own.recv(1)

    stage.fork(hear, "rank0", ours, theirs)
    stage.fork(hear, "rank1", theirs, ours)
    ours.close()
    theirs.close()
    stage.wait()


@patient("blocked", "undetermined", culprit="rank0", also=("rank1",), edges=TWO_RANKS[:1])
def connection_that_is_never_accepted(stage: Stage) -> None:
    """Rank 1 connects to a unix socket of rank 0 whose queue is full; rank 0 does not accept, it waits for rank 1."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{stage.folder}/s")
    listener.listen(0)
    ahead = socket.socket(socket.AF_UNIX)
    ahead.connect(f"{stage.folder}/s")

    def rank(stage: Stage) -> None:
        listener.close()
        ahead.close()
        stage.arrive("rank1")
        socket.socket(socket.AF_UNIX).connect(f"{stage.folder}/s")

    word = stage.waiting_rank()
    stage.fork(rank, stage)
    word.close()
    stage.wait()


@patient(
    "blocked",
    "undetermined",
    culprit="rank1",
    also=("child",),
    parts=("launcher", "rank0", "rank1", "child"),
    edges=(*TWO_RANKS, ("rank1", "child", "child"), ("child", "rank1", "pipe")),
)
def child_whose_output_nobody_reads(stage: Stage) -> None:
    """Rank 1 waits for the end of a child whose output it should read: the child's pipe is full."""

    def talk(output: int) -> None:
        os.set_blocking(output, False)
        try:
            while True:
                os.write(output, bytes(4096))
        except BlockingIOError:
            os.set_blocking(output, True)
        stage.arrive("child")
        os.write(output, bytes(4096))

    def rank(stage: Stage) -> None:
        reading, writing = os.pipe()

        def child() -> None:
            os.close(reading)
            talk(writing)

        pid = stage.fork(child)
        os.close(writing)
        stage.arrive("rank1")
        os.waitpid(pid, 0)

    stage.two_ranks(rank)


@patient("undetermined", "slow-start", "healthy", companion="trickling-sender")
def download_of_a_few_bytes(stage: Stage) -> None:
    """Rank 1 receives 200 bytes a second, less than what counts as work; rank 0 waits for it."""

    def rank(stage: Stage) -> None:
        port = int((Path(stage.folder) / "word").read_bytes())
        source = socket.create_connection(("127.0.0.1", port))
        stage.arrive("rank1")
        while source.recv(DOWNLOADED_BYTES):
            pass

    stage.two_ranks(rank)


@patient("undetermined", "slow-start", "healthy", goes_on=True)
def polls_for_a_marker_file(stage: Stage) -> None:
    """Rank 1 looks for a file twenty times a second, as loaders wait for a download of another process."""

    def rank(stage: Stage) -> None:
        marker = Path(stage.folder, "downloaded")
        stage.arrive("rank1")
        while not marker.exists():
            stage.beat()
            time.sleep(SEVERAL_S)

    stage.two_ranks(rank)
