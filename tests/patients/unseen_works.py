"""Unseen patients that are well and get on, slowly and mostly asleep."""

from __future__ import annotations

import asyncio
import fcntl
import importlib
import os
import signal
import socket
import sqlite3
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.patients.stage import SEVERAL_S, Stage, get_on, patient, say
from tests.patients.unseen_props import NOBODYS_ADDRESS, Act, arrive_together, fork_together, log_to

STEP_S = 0.2
TURN_S = 1.5


@patient("healthy", "slow-start", parts=("launcher", "pair"))
def decoding_that_is_logged(stage: Stage) -> None:
    """Rank 0 asks rank 1 for the next token five times a second, and writes a line about each to its log."""
    ours, theirs = socket.socketpair()

    def ask(meet: Callable[[], None]) -> None:
        theirs.close()
        log_to(f"{stage.folder}/rank0.log")
        meet()
        for number in range(1 << 30):
            ours.sendall(b"?")
            ours.recv(100)
            say(f"Decode batch, #running-req: 1, #token: {number}, gen throughput (token/s): 5.00")

    parts = fork_together(stage, ("pair", ask), ("pair", lambda meet: (ours.close(), meet(), answer(theirs))))
    ours.close()
    theirs.close()
    arrive_together(stage, parts)
    stage.wait()


def answer(link: socket.socket) -> None:
    while link.recv(100):
        time.sleep(STEP_S)
        link.sendall(b"token")


@patient("healthy", "slow-start", "undetermined", parts=("launcher", "pair"))
def two_ranks_in_lockstep(stage: Stage) -> None:
    """Two ranks exchange a word over TCP some twenty times a second, by turns, and say nothing anywhere."""
    server = socket.create_server(("127.0.0.1", 0))

    def ask(meet: Callable[[], None]) -> None:
        address = server.getsockname()
        server.close()
        with socket.create_connection(address) as link:
            meet()
            while True:
                link.sendall(b"?")
                link.recv(100)

    def reply(meet: Callable[[], None]) -> None:
        link, _ = server.accept()
        meet()
        while link.recv(100):
            time.sleep(SEVERAL_S)
            link.sendall(b"token")

    parts = fork_together(stage, ("pair", ask), ("pair", reply))
    server.close()
    arrive_together(stage, parts)
    stage.wait()


@patient("healthy", "slow-start", parts=("launcher", "server", "client"))
def answer_that_is_streamed(stage: Stage) -> None:
    """An asyncio server streams an answer to its client, who writes it down piece by piece."""

    async def stream(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"data: token\n\n")
            await writer.drain()
            await asyncio.sleep(SEVERAL_S)

    async def serve(listener: socket.socket) -> None:
        server = await asyncio.start_server(stream, sock=listener)
        stage.arrive("server")
        await server.serve_forever()

    listener = socket.create_server(("127.0.0.1", 0))

    def read() -> None:
        with socket.create_connection(listener.getsockname()) as link, Path(f"{stage.folder}/answer").open("wb") as out:
            stage.arrive("client")
            while piece := link.recv(4096):
                out.write(piece)
                out.flush()

    stage.fork(lambda: asyncio.run(serve(listener)))
    stage.fork(read)
    stage.wait()


@patient("healthy", "slow-start")
def memory_that_grows(stage: Stage) -> None:
    """Rank 1 fills memory, 256 KiB twenty times a second, and begins anew after 256 MiB; rank 0 waits for it."""

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        while True:
            cache: list[bytes] = []
            while len(cache) < 1024:
                cache.append(b"k" * (1 << 18))
                time.sleep(SEVERAL_S)

    stage.two_ranks(rank)


@patient("healthy", "slow-start")
def log_through_a_slow_helper(stage: Stage) -> None:
    """Rank 1's log goes through a helper that writes 8 KB/s to a file; the pipe is full; rank 0 waits for rank 1."""

    def copy(reading: int, writing: int) -> None:
        os.close(writing)
        with Path(f"{stage.folder}/log").open("wb", buffering=0) as log:
            while piece := os.read(reading, 2048):
                log.write(piece)
                time.sleep(STEP_S + SEVERAL_S)

    def rank(stage: Stage) -> None:
        reading, writing = os.pipe()
        stage.fork(copy, reading, writing)
        os.close(reading)
        stage.arrive("rank1")
        for number in range(1 << 30):
            os.write(writing, b"layer %9d loaded\n" % number * 32)

    stage.two_ranks(rank)


@patient("healthy", "slow-start")
def retries_until_the_server_is_up(stage: Stage) -> None:
    """Rank 1 tries every half second to connect to rank 0, which reads its weights first and will listen then."""

    def load() -> None:
        stage.arrive("rank0")
        get_on()

    def connect() -> None:
        stage.arrive("rank1")
        while True:
            try:
                socket.create_connection(NOBODYS_ADDRESS)
            except ConnectionRefusedError:
                time.sleep(0.5)

    stage.fork(load)
    stage.fork(connect)
    stage.wait()


@patient("healthy", "slow-start", "undetermined")
def file_that_appears_after_a_while(stage: Stage) -> None:
    """Rank 1 looks for rank 0's file five times a second and takes it away; rank 0 makes the next after 3 s."""
    mark = Path(stage.folder) / "mark"

    def make() -> None:
        stage.arrive("rank0")
        while True:
            time.sleep(3)
            mark.touch()

    def take() -> None:
        stage.arrive("rank1")
        while True:
            while not mark.exists():
                time.sleep(STEP_S)
            mark.unlink()

    stage.fork(make)
    stage.fork(take)
    stage.wait()


@patient("healthy", "slow-start", "undetermined", parts=("launcher", "pair"))
def file_lock_that_is_handed_over(stage: Stage) -> None:
    """Two ranks take turns of 1.5 s with a file lock: whenever one looks, one of them waits for the other."""

    def rank(number: int) -> Act:
        def act(meet: Callable[[], None]) -> None:
            meet()
            with Path(f"{stage.folder}/lock").open("a") as file:
                while True:
                    fcntl.flock(file, fcntl.LOCK_EX)
                    time.sleep(TURN_S)
                    fcntl.flock(file, fcntl.LOCK_UN)
                    time.sleep(SEVERAL_S * (1 + number))

        return act

    arrive_together(stage, fork_together(stage, ("pair", rank(0)), ("pair", rank(1))))
    stage.wait()


def try_crosswise(first: threading.Lock, second: threading.Lock, patience_s: float) -> None:
    while True:
        with first:
            time.sleep(SEVERAL_S)
            if second.acquire(timeout=patience_s):
                second.release()
        time.sleep(SEVERAL_S)


@patient("healthy", "slow-start", "undetermined")
def locks_crosswise_with_a_timeout(stage: Stage) -> None:
    """Two threads of rank 1 want each other's lock now and then, and give way after a second or two."""

    def rank(stage: Stage) -> None:
        one, other = threading.Lock(), threading.Lock()
        for locks in ((one, other, 1.0), (other, one, 2.3)):
            threading.Thread(target=try_crosswise, args=locks, daemon=True).start()
        stage.arrive("rank1")
        threading.Event().wait()

    stage.two_ranks(rank)


@patient("healthy", "slow-start", "undetermined")
def rest_between_two_attempts(stage: Stage) -> None:
    """Rank 1 does something for a moment, and rests for 4 s before it does the next; rank 0 waits for it."""

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        with Path(f"{stage.folder}/attempts").open("w") as log:
            while True:
                sum(range(100_000))
                log.write("attempt\n")
                log.flush()
                time.sleep(4)

    stage.two_ranks(rank)


@patient("healthy", "slow-start", "undetermined")
def tensor_that_is_taken_slowly(stage: Stage) -> None:
    """Rank 1 sends a large tensor, and rank 0 takes a piece of it every 50 ms: the socket is full all the time."""
    ours, theirs = socket.socketpair()

    def take() -> None:
        theirs.close()
        stage.arrive("rank0")
        while ours.recv(1 << 14):
            time.sleep(SEVERAL_S)

    def give() -> None:
        ours.close()
        stage.arrive("rank1")
        while True:
            theirs.sendall(bytes(1 << 20))

    stage.fork(take)
    stage.fork(give)
    ours.close()
    theirs.close()
    stage.wait()


@patient("healthy", "slow-start")
def rows_into_a_database(stage: Stage) -> None:
    """Rank 1 commits rows to a database of its own some twenty times a second; rank 0 waits for it."""

    def rank(stage: Stage) -> None:
        database = sqlite3.connect(f"{stage.folder}/rows.sqlite", isolation_level=None)
        database.execute("CREATE TABLE rows (number INTEGER, text BLOB)")
        stage.arrive("rank1")
        for number in range(1 << 30):
            database.execute("INSERT INTO rows VALUES (?, ?)", (number, bytes(1000)))
            time.sleep(SEVERAL_S)

    stage.two_ranks(rank)


def serve_on(stage: Stage, name: str) -> None:
    log_to(f"{stage.folder}/{name}.log")
    try:
        importlib.import_module("flash_attn_of_another_machine")
    except ImportError:
        traceback.print_exc()
    stage.arrive(name)
    for number in range(1 << 30):
        say(f"Loading safetensors checkpoint shards: {number} done")
        time.sleep(STEP_S)


@patient("healthy", "slow-start")
def traceback_of_an_import_that_is_optional(stage: Stage) -> None:
    """Rank 1's log has a traceback that it got over, and a new line five times a second; rank 0 waits for it."""
    stage.two_ranks(lambda stage: serve_on(stage, "rank1"))


@patient("healthy", "slow-start", "undetermined", parts=("launcher", "rank0", "helper"))
def helper_that_was_ended_on_purpose(stage: Stage) -> None:
    """Rank 0 killed its helper, which it needs no more, never reaped it, and goes on with a log line after another."""

    def rank() -> None:
        helper = stage.fork(signal.pause)
        os.kill(helper, signal.SIGKILL)
        os.waitid(os.P_PID, helper, os.WEXITED | os.WNOWAIT)
        stage.arrive("helper", helper)
        serve_on(stage, "rank0")

    stage.fork(rank)
    stage.wait()
