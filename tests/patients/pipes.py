"""Patients that read what nobody writes or write what nobody reads, and their doubles for whom somebody will."""

from __future__ import annotations

import os
import socket
import threading
import time
from pathlib import Path

from tests.patients.stage import TWO_RANKS, Stage, get_on, patient

LONG_S = 3600.0
BLOCK = b"x" * 4096


def read_word(descriptor: int) -> bytes:
    return os.read(descriptor, 1)


@patient("blocked", culprit="rank1", edges=TWO_RANKS)
def pipe_of_its_own(stage: Stage) -> None:
    """Rank 1 reads from a pipe whose only writing end it holds itself; rank 0 waits for rank 1."""

    def rank(stage: Stage) -> None:
        reading, _writing = os.pipe()
        stage.arrive("rank1")
        read_word(reading)

    stage.two_ranks(rank)


@patient("undetermined", "slow-start", "healthy")
def pipe_of_a_working_thread(stage: Stage) -> None:
    """The same, but another thread of rank 1 is about to write."""

    def rank(stage: Stage) -> None:
        reading, _writing = os.pipe()
        threading.Thread(target=time.sleep, args=(LONG_S,), daemon=True).start()
        stage.arrive("rank1")
        read_word(reading)

    stage.two_ranks(rank)


@patient("undetermined", "slow-start", "healthy")
def pipe_of_a_working_member(stage: Stage) -> None:
    """Rank 1 reads from a pipe that rank 0 holds, and rank 0 works."""
    reading, writing = os.pipe()

    def worker() -> None:
        os.close(reading)
        stage.arrive("rank0")
        get_on()

    def rank() -> None:
        os.close(writing)
        stage.arrive("rank1")
        read_word(reading)

    stage.fork(worker)
    stage.fork(rank)
    os.close(reading)
    os.close(writing)
    stage.wait()


@patient("blocked", "undetermined", culprit="rank1", edges=TWO_RANKS)
def fifo_without_a_writer(stage: Stage) -> None:
    """Rank 1 opens a FIFO that nobody opens for writing; rank 0 waits for rank 1."""
    path = f"{stage.folder}/fifo"
    os.mkfifo(path)

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        os.open(path, os.O_RDONLY)

    stage.two_ranks(rank)


@patient("undetermined", "healthy", parts=("launcher",))
def fifo_for_commands(stage: Stage) -> None:
    """An idle server that takes commands from a FIFO: whoever has one opens it for a moment."""
    path = f"{stage.folder}/commands"
    os.mkfifo(path)
    stage.arrive("launcher")
    while True:
        with Path(path).open() as commands:
            commands.read()


@patient("undetermined", "healthy", parts=("launcher",))
def commands_from_standard_input(stage: Stage) -> None:
    """An idle server that takes commands from the pipe that whoever started it holds."""
    stage.arrive("launcher")
    read_word(0)


@patient("blocked", "undetermined", culprit="starter", edges=TWO_RANKS)
def output_that_nobody_reads(stage: Stage) -> None:
    """Rank 1 writes to its standard output, a full pipe that whoever started the launch should read.

    A starter that only rests before it reads on looks the same, see reader_outside_that_rests: it need not be told.
    """

    def rank(stage: Stage) -> None:
        os.set_blocking(1, False)
        fill(1)
        os.set_blocking(1, True)
        stage.arrive("rank1")
        os.write(1, BLOCK)

    stage.two_ranks(rank)


def fill(pipe: int) -> None:
    try:
        while True:
            os.write(pipe, BLOCK)
    except BlockingIOError:
        return


@patient("undetermined", "slow-start", "healthy", companion="slow-reader")
def output_that_is_read_slowly(stage: Stage) -> None:
    """Rank 1 writes more than whoever started the launch reads; the pipe is full most of the time."""

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        while True:
            os.write(1, BLOCK)

    stage.two_ranks(rank)


@patient("undetermined", "slow-start", "healthy", companion="slow-reader")
def large_output_that_is_read_slowly(stage: Stage) -> None:
    """The same in writes of a mebibyte, which count as written only when the last byte has been taken."""

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        while True:
            os.write(1, BLOCK * 256)

    stage.two_ranks(rank)


@patient(
    "blocked",
    "undetermined",
    culprit="rank0",
    also=("rank1",),
    edges=(*TWO_RANKS, ("rank1", "rank0", "pipe")),
)
def full_pipe_to_a_rank_that_waits(stage: Stage) -> None:
    """Rank 1 writes into a full pipe that rank 0 should read, and rank 0 waits for a word of rank 1 elsewhere."""
    reading, writing = os.pipe()
    ours, theirs = socket.socketpair()

    def wait_for_a_word() -> None:
        os.close(writing)
        theirs.close()
        stage.arrive("rank0")
        ours.recv(1)

    def rank() -> None:
        os.close(reading)
        ours.close()
        os.set_blocking(writing, False)
        fill(writing)
        os.set_blocking(writing, True)
        stage.arrive("rank1")
        os.write(writing, BLOCK)

    stage.fork(wait_for_a_word)
    stage.fork(rank)
    for end in (reading, writing):
        os.close(end)
    ours.close()
    theirs.close()
    stage.wait()
