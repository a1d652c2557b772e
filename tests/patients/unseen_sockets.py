"""Unseen patients that wait for a word over a socket, an eventfd, an event loop or a file that will never come."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.patients.stage import Stage, patient
from tests.patients.unseen_props import Act, arrive_together, fork_together, keep_only

TENSOR_BYTES = 1 << 24


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    """Return the two ends of a connection over the loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        one = socket.create_connection(server.getsockname())
        other, _ = server.accept()
    return one, other


def close_all(sockets: Sequence[socket.socket]) -> None:
    for one in sockets:
        one.close()


@patient("blocked", parts=("launcher", "pair"), culprit="pair")
def two_ranks_that_receive_from_each_other(stage: Stage) -> None:
    """Either of two ranks waits for the other's word over the one TCP connection between them."""
    ends = tcp_pair()

    def rank(mine: int) -> Act:
        def act(meet: Callable[[], None]) -> None:
            ends[1 - mine].close()
            meet()
            ends[mine].recv(1)

        return act

    parts = fork_together(stage, ("pair", rank(0)), ("pair", rank(1)))
    close_all(ends)
    arrive_together(stage, parts)
    stage.wait()


@patient("blocked", parts=("launcher", "ring"), culprit="ring")
def ring_of_three_receives(stage: Stage) -> None:
    """Each of three ranks first receives from its left neighbour and would then send to its right one."""
    links = [socket.socketpair() for _ in range(3)]
    ends = [end for link in links for end in link]

    def rank(number: int) -> Act:
        def act(meet: Callable[[], None]) -> None:
            before, after = links[number - 1][1], links[number][0]
            keep_only([end.fileno() for end in ends], before.fileno(), after.fileno())
            meet()
            after.sendall(before.recv(1))

        return act

    parts = fork_together(stage, *(("ring", rank(number)) for number in range(3)))
    close_all(ends)
    arrive_together(stage, parts)
    stage.wait()


@patient("blocked", parts=("launcher", "pair"), culprit="pair")
def two_ranks_that_send_before_they_receive(stage: Stage) -> None:
    """Either of two ranks sends 16 MiB and would receive then: both sockets are full."""
    ends = socket.socketpair()

    def rank(mine: int) -> Act:
        def act(meet: Callable[[], None]) -> None:
            ends[1 - mine].close()
            meet()
            ends[mine].sendall(bytes(TENSOR_BYTES))
            ends[mine].recv(TENSOR_BYTES)

        return act

    parts = fork_together(stage, ("pair", rank(0)), ("pair", rank(1)))
    close_all(ends)
    arrive_together(stage, parts)
    stage.wait()


@patient("blocked", parts=("launcher", "pair"), culprit="pair")
def sender_to_one_who_reads_elsewhere(stage: Stage) -> None:
    """Rank 1 sends more over TCP than fits; rank 0, who should receive it, first waits for rank 1's word on a pipe."""
    ends, (reading, writing) = tcp_pair(), os.pipe()

    def receive(meet: Callable[[], None]) -> None:
        ends[1].close()
        os.close(writing)
        meet()
        os.read(reading, 1)
        ends[0].recv(TENSOR_BYTES)

    def send(meet: Callable[[], None]) -> None:
        ends[0].close()
        os.close(reading)
        meet()
        ends[1].sendall(bytes(TENSOR_BYTES))
        os.write(writing, b".")

    parts = fork_together(stage, ("pair", receive), ("pair", send))
    close_all(ends)
    os.close(reading)
    os.close(writing)
    arrive_together(stage, parts)
    stage.wait()


@patient("blocked", parts=("launcher", "rank0", "rank1", "rank2"), culprit="rank2")
def rendezvous_without_the_last_rank(stage: Stage) -> None:
    """Rank 0 accepts one connection for each rank; rank 1's came and waits; rank 2 was stopped before it connected."""
    server = socket.create_server(("127.0.0.1", 0))
    address = server.getsockname()

    def store(meet: Callable[[], None]) -> None:
        meet()
        joined = [server.accept()[0] for _ in range(2)]
        for one in joined:
            one.sendall(b"go")

    def join(meet: Callable[[], None]) -> None:
        server.close()
        with socket.create_connection(address) as link:
            meet()
            link.recv(2)

    def late(meet: Callable[[], None]) -> None:
        server.close()
        meet()
        os.kill(os.getpid(), signal.SIGSTOP)
        socket.create_connection(address).recv(2)

    parts = fork_together(stage, ("rank0", store), ("rank1", join), ("rank2", late))
    server.close()
    os.waitpid(stage.children[2], os.WUNTRACED)
    arrive_together(stage, parts)
    stage.wait()


@patient("blocked", "undetermined", culprit="rank1")
def datagram_that_was_lost(stage: Stage) -> None:
    """Rank 1 waits for an answer by UDP to a datagram that nobody received; rank 0 waits for rank 1."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as nobody:
        nobody.bind(("127.0.0.1", 0))
        gone = nobody.getsockname()

    def rank(stage: Stage) -> None:
        question = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        question.sendto(b"?", gone)
        stage.arrive("rank1")
        question.recvfrom(100)

    stage.two_ranks(rank)


@patient("blocked", culprit="rank1")
def eventfd_of_its_own(stage: Stage) -> None:
    """Rank 1's only thread reads an eventfd that no other process has; rank 0 waits for rank 1."""

    def rank(stage: Stage) -> None:
        counter = os.eventfd(0)
        stage.arrive("rank1")
        os.eventfd_read(counter)

    stage.two_ranks(rank)


@patient("blocked", "undetermined", culprit="rank1")
def coroutine_that_awaits_nobody(stage: Stage) -> None:
    """Rank 1's event loop has nothing but its own wake-up socket: no timer, no peer; its coroutine awaits an event."""

    async def wait() -> None:
        event = asyncio.Event()
        stage.arrive("rank1")
        await event.wait()

    def rank(stage: Stage) -> None:
        asyncio.run(wait())

    stage.two_ranks(rank)


@patient("blocked", "undetermined", culprit="rank1")
def baton_that_nobody_hands_over(stage: Stage) -> None:
    """Rank 1 looks every 0.1 s whether the lock file of a build is gone; the builder was killed long ago."""
    baton = Path(stage.folder) / "lock"
    baton.touch()
    module = Path(stage.folder) / "file_baton.py"
    module.write_text(
        "import os, time\n\n\nclass FileBaton:\n    def __init__(self, path):\n        self.path = path\n\n"
        "    def wait(self):\n        while os.path.exists(self.path):\n            time.sleep(0.1)\n"
    )

    def rank(stage: Stage) -> None:
        scope: dict[str, type] = {}
        exec(compile(module.read_text(), str(module), "exec"), scope)
        stage.arrive("rank1")
        scope["FileBaton"](str(baton)).wait()

    stage.two_ranks(rank)
