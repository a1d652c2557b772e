"""Run py-spy on several processes side by side, each with its own deadline, and leave nothing behind."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from hangdoc.launch.pidfd import send

DEADLINE_S = 3.0
"""For one dump; 0.06 s with one thread and 0.42 s with 500 were measured on a quiet machine."""
KILLED_S = 0.2
"""How long a killed py-spy may take to go; arbitrary."""
MOST_AT_ONCE = 4
ATTEMPTS = 3
"""A dump that does not stop the target is racy while that runs: 9 of 96 failed on targets that only recursed, so
three in a row about once in 1,200; a target that sleeps never failed."""


@dataclass(frozen=True)
class Outcome:
    """How one dump ended: what py-spy wrote; timed_out: it was killed."""

    pid: int
    status: int
    output: bytes
    complaint: str
    timed_out: bool = False


@dataclass
class Dump:
    """A running py-spy: it writes into files in memory, so nobody has to drain a pipe while it works."""

    pid: int
    stopped_before: bool
    deadline_s: float
    child: subprocess.Popen[bytes]
    output: int
    complaint: int
    target: int | None = None
    exit: int = field(init=False)

    def __post_init__(self) -> None:
        self.exit = os.pidfd_open(self.child.pid)

    def kill(self) -> None:
        """End py-spy; it may have ended already, or be let go of by another thread at this moment."""
        with suppress(OSError):
            send(self.exit, signal.SIGKILL)

    def ended(self, timeout_s: float) -> bool:
        """Wait until py-spy has ended."""
        poll = select.poll()
        poll.register(self.exit, select.POLLIN)
        return bool(poll.poll(timeout_s * 1000))

    def reap(self) -> float:
        """Take the exit status of a py-spy that has ended; return the CPU time it used."""
        _, status, usage = os.wait4(self.child.pid, 0)
        self.child.returncode = os.waitstatus_to_exitcode(status)
        return usage.ru_utime + usage.ru_stime

    def close(self) -> None:
        """Let go of the files."""
        for descriptor in (self.output, self.complaint, self.exit, self.target):
            if descriptor is not None:
                os.close(descriptor)


def find() -> Path | None:
    """Find py-spy: beside hangdoc's interpreter first, because sudo drops PATH."""
    beside = Path(sys.executable).parent / "py-spy"
    if os.access(beside, os.X_OK):
        return beside
    found = shutil.which("py-spy")
    return Path(found) if found else None


@dataclass(frozen=True)
class Way:
    """How to dump. options: of py-spy; at_once: dumps side by side."""

    options: tuple[str, ...] = ("--nonblocking",)
    deadline_s: float = DEADLINE_S
    at_once: int = MOST_AT_ONCE

    @property
    def stops(self) -> bool:
        """Whether the target is stopped for the time of the dump."""
        return "--nonblocking" not in self.options


class Dumps:
    """Dumps of many processes, a few at a time."""

    def __init__(
        self,
        program: Path,
        is_stopped: Callable[[int], bool],
        is_alive: Callable[[int], bool],
        way: Way | None = None,
    ) -> None:
        self._program = program
        self._way = way or Way(deadline_s=DEADLINE_S)
        self._is_stopped = is_stopped
        self._is_alive = is_alive
        self._at_once = min(self._way.at_once, os.cpu_count() or 1)
        self._running: list[Dump] = []
        self._over = threading.Event()
        self.cpu_s = 0.0

    def take(self, pids: list[int]) -> Iterator[Outcome]:
        """Dump every process and yield each outcome as it comes; a failure on a live process is tried again."""
        waiting = list(pids)
        attempts = dict.fromkeys(pids, 0)
        while (waiting and not self._over.is_set()) or self._running:
            while waiting and not self._over.is_set() and len(self._running) < self._at_once:
                attempts[waiting[0]] += 1
                self._running.append(self._start(waiting.pop(0)))
                if self._over.is_set():  # interrupted while it started
                    self._running[-1].kill()
            for outcome in self._ended():
                if outcome.status > 0 and attempts[outcome.pid] < ATTEMPTS and self._is_alive(outcome.pid):
                    waiting.append(outcome.pid)
                else:
                    yield outcome

    def interrupt(self) -> None:
        """Kill whatever runs, from any thread: the take that waits for it finds out and ends."""
        self._over.set()
        for dump in list(self._running):
            dump.kill()

    def close(self) -> None:
        """Kill whatever still runs."""
        self._over.set()
        while self._running:
            self._end(self._running.pop())

    def _start(self, pid: int) -> Dump:
        stopped_before = self._is_stopped(pid)
        try:
            target = os.pidfd_open(pid)
        except OSError:
            target = None  # it has ended: py-spy will say so
        output, complaint = os.memfd_create("stacks"), os.memfd_create("complaint")
        child = subprocess.Popen(
            [str(self._program), "dump", "--json", *self._way.options, "--pid", str(pid)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=complaint,
            process_group=0,  # a Ctrl-C for hangdoc must not look like a failed dump
        )
        deadline_s = time.monotonic() + self._way.deadline_s
        return Dump(pid, stopped_before, deadline_s, child, output, complaint, target)

    def _ended(self) -> Iterator[Outcome]:
        poll = select.poll()
        for dump in self._running:
            poll.register(dump.exit, select.POLLIN)
        left_s = min(dump.deadline_s for dump in self._running) - time.monotonic()
        ready = {descriptor for descriptor, _ in poll.poll(max(0.0, left_s) * 1000)}
        for dump in list(self._running):
            if dump.exit in ready:
                self._running.remove(dump)
                yield self._finished(dump)
            elif dump.deadline_s <= time.monotonic():
                self._running.remove(dump)
                self._end(dump)
                yield Outcome(dump.pid, -signal.SIGKILL, b"", "", timed_out=True)

    def _end(self, dump: Dump) -> None:
        dump.kill()
        # A py-spy that the kernel holds cannot die yet: it is left to the kernel, not waited for.
        if dump.ended(KILLED_S):
            self.cpu_s += dump.reap()
        self._let_go_on(dump)
        dump.close()

    def _let_go_on(self, dump: Dump) -> None:
        # A tool that was killed while it stopped its target leaves it stopped. None of these dumps stops one: a net.
        if dump.target is not None and not dump.stopped_before and self._is_stopped(dump.pid):
            with suppress(PermissionError):
                send(dump.target, signal.SIGCONT)

    def _finished(self, dump: Dump) -> Outcome:
        self.cpu_s += dump.reap()
        output, complaint = _content(dump.output), _content(dump.complaint)
        if dump.child.returncode < 0 or self._way.stops:
            self._let_go_on(dump)
        dump.close()
        return Outcome(dump.pid, dump.child.returncode, output, complaint.decode("utf-8", "replace"))


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)
