"""What a patient is made of: processes that die with their parent, a word from each once it is ill, and the truth."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, TypeAlias

HANGS = frozenset({"busy-wait", "blocked", "hung", "crashed"})
PARENT_DEATH_SIGNAL, ALLOW_TRACER, ANY_TRACER = 1, 0x59616D61, ctypes.c_ulong(-1)
"""Numbers of prctl(2): PR_SET_PDEATHSIG, PR_SET_PTRACER (for Yama), PR_SET_PTRACER_ANY."""

PULSE_FILE, PULSE_BYTES = "pulse", 8

Waiting: TypeAlias = tuple[str, str, str]
"""Who waits for whom through what, by the names of parts: ("rank0", "rank1", "socket")."""

TWO_RANKS: tuple[Waiting, ...] = (("launcher", "rank0", "child"), ("rank0", "rank1", "socket"))
"""The waits of a launch that two_ranks has set up."""

SEVERAL_S = 0.05
"""Pace of a patient that gets on slowly: what makes it slow, never a wait for somebody."""


@dataclass(frozen=True)
class Truth:
    """What may be said of a patient. culprit: the part that has to move, of whoever is named in a hang.

    also: parts that may be named in its place, as in a circle each of those who wait may; edges: waits that the
    document has to list.
    """

    accepted: frozenset[str]
    culprit: str
    also: frozenset[str] = frozenset()
    edges: frozenset[Waiting] = frozenset()

    @property
    def forbidden(self) -> frozenset[str]:
        """What would be worse than wrong: a hang that is none, or peace where there is none."""
        return (HANGS | {"healthy", "slow-start"}) - self.accepted if self.accepted & HANGS else HANGS

    def names(self, culprits: frozenset[str]) -> bool:
        """Tell whether these are who has to move, and nobody else."""
        return bool(culprits) and culprits <= {self.culprit} | self.also


@dataclass(frozen=True)
class Patient:
    """A small launch and its truth. parts: those that say so when they are ill.

    needs: programs it cannot do without, or "root" or "freezer", with spaces between; companion: who has to do with it
    from outside the launch (see companions); burns: the parts that use CPU all the while; goes_on: it beats its pulse
    again, sooner or later. What of this was not seen during a look makes the look inconclusive (see vitals).
    """

    name: str
    act: Callable[[Stage], None]
    truth: Truth
    parts: tuple[str, ...]
    needs: str
    companion: str
    burns: tuple[str, ...] = ()
    goes_on: bool = False


PATIENTS: dict[str, Patient] = {}


def patient(
    *accepted: str,
    parts: tuple[str, ...] = ("launcher", "rank0", "rank1"),
    culprit: str = "",
    needs: str = "",
    companion: str = "",
    also: tuple[str, ...] = (),
    edges: tuple[Waiting, ...] = (),
    burns: tuple[str, ...] = (),
    goes_on: bool = False,
) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    """Enter a function as a patient of its name; it runs in the launcher."""

    def enter(act: Callable[[Stage], None]) -> Callable[[Stage], None]:
        name = act.__name__.replace("_", "-")
        truth = Truth(frozenset(accepted), culprit, frozenset(also), frozenset(edges))
        burning = burns or ((culprit,) if truth.accepted == {"busy-wait"} else ())
        PATIENTS[name] = Patient(name, act, truth, parts, needs, companion, burning, goes_on)
        return act

    return enter


def tie_to_parent(parent: int) -> None:
    """Die with the parent, whatever kills it."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    prctl(ALLOW_TRACER, ANY_TRACER, 0, 0, 0)
    if os.getppid() != parent:  # it died before the first line above
        os._exit(1)


@dataclass
class Stage:
    """The launcher's view of its launch. ready: the pipe on which parts say that they are ill; folder: of its own."""

    ready: int
    folder: str
    children: list[int] = field(default_factory=list)

    def arrive(self, name: str, pid: int | None = None) -> None:
        """Say that a part has come to where it will stay."""
        os.write(self.ready, f"{name} {pid or os.getpid()}\n".encode())

    def fork(self, act: Callable[..., object], *arguments: object) -> int:
        """Start a part, a process of its own, that does one thing."""
        parent = os.getpid()
        pid = os.fork()
        if pid:
            self.children.append(pid)
            return pid
        tie_to_parent(parent)
        try:
            act(*arguments)
        finally:
            os._exit(0)

    def beat(self) -> None:
        """Beat the pulse once: shared memory, so that the beat itself is no reading of anything."""
        with Path(self.folder, PULSE_FILE).open("r+b") as file, mmap.mmap(file.fileno(), PULSE_BYTES) as pulse:
            count = int.from_bytes(pulse[:], "little")
            pulse[:] = (count + 1).to_bytes(PULSE_BYTES, "little")

    def wait(self) -> None:
        """Be a launcher that waits for its first rank, and reaps nobody else before."""
        self.arrive("launcher")
        for child in self.children:
            os.waitpid(child, 0)

    def waiting_rank(self, first: Callable[[], object] = lambda: None) -> socket.socket:
        """Start a rank 0 that waits on a socket for a word of rank 1; return rank 1's end. first: its first act."""
        ours, theirs = socket.socketpair()

        def wait_for_rank_one() -> None:
            theirs.close()
            first()
            self.arrive("rank0")
            ours.recv(1)

        self.fork(wait_for_rank_one)
        ours.close()
        return theirs

    def two_ranks_in_memory(self, rank_one: Callable[[Stage], object]) -> None:
        """The same, but rank 1 has nothing open on which anybody could speak to it: only a pipe to write to."""
        reading, writing = os.pipe()

        def wait_for_rank_one() -> None:
            os.close(writing)
            self.arrive("rank0")
            os.read(reading, 1)

        self.fork(wait_for_rank_one)
        os.close(reading)
        self.fork(rank_one, self)
        os.close(writing)
        self.wait()

    def two_ranks(self, rank_one: Callable[[Stage], object]) -> None:
        """Be a launcher whose rank 0 waits for rank 1, which falls ill."""
        word = self.waiting_rank()
        self.fork(rank_one, self)
        word.close()
        self.wait()


def keep_open() -> None:
    """Let what is open here stay open in the program that follows: peers must not see an end."""
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the folder's own descriptor is gone by now
            os.set_inheritable(int(path.name), True)


def become(stage: Stage, program: str, *words: str) -> NoReturn:
    """Go on as a program that is told its parent, the descriptor on which it says that it is ill, and other words."""
    keep_open()
    os.execv(program, [program, str(os.getppid()), str(stage.ready), *words])


def get_on(each_time: Callable[[], object] = lambda: None) -> NoReturn:
    """Be alive for ever, at a slow and steady pace."""
    with Path("/dev/zero").open("rb", buffering=0) as source:
        while True:
            source.read(1 << 16)
            each_time()
            time.sleep(SEVERAL_S)


def say(text: str) -> None:
    """Write a line of log."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
