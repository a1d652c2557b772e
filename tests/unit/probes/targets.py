"""Small programs to look at, and how a probe is asked about them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from hangdoc.model.process import Launch, Process, ProcessKey
from hangdoc.model.reading import Known, Missing
from hangdoc.model.snapshot import Sample
from hangdoc.model.stack import Stack
from hangdoc.procfs.stat import parse_stat
from hangdoc.sampling.probe import Context, Probe, Round

NOBODY = 65534
T = TypeVar("T")

OBEDIENT = """
import os, sys, threading
def say(word): print(word, flush=True)
"""
"""The beginning of each target: it says a word when it is where the test wants it."""


class Target:
    """A running program that talks over its standard input and output."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self.child = child
        self.pid = child.pid
        self.process = process_of(child.pid)

    def hear(self) -> str:
        """Wait for the next word."""
        assert self.child.stdout is not None
        return self.child.stdout.readline().decode().strip()

    def tell(self, word: str = "go") -> str:
        """Say a word and wait for the answer."""
        assert self.child.stdin is not None
        self.child.stdin.write(word.encode() + b"\n")
        self.child.stdin.flush()
        return self.hear()


@contextmanager
def running(code: str, *command: str) -> Iterator[Target]:
    """Run a program until the test is done with it; it says "ready" once it is ill."""
    argv = [*command, sys.executable, "-c", OBEDIENT + code]
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        target = Target(child)
        assert target.hear() == "ready"
        yield target
    finally:
        child.kill()
        child.communicate()


def process_of(pid: int, *, start_ticks: int | None = None) -> Process:
    """Make the roster's entry of a process."""
    line = parse_stat(Path(f"/proc/{pid}/stat").read_bytes())
    ticks = line.start_ticks if start_ticks is None else start_ticks
    return Process(key=ProcessKey(pid, ticks), ppid=line.ppid, role="other")


def context(interned: list[Stack] | None = None) -> Context:
    """Make what a probe is opened with; stacks are interned into the list."""
    table: list[Stack] = [] if interned is None else interned

    def intern(stack: Stack) -> int:
        table.append(stack)
        return len(table) - 1

    return Context(launch=Launch(root=ProcessKey(1, 1), engine="generic"), intern=intern)


def round_of(*processes: Process, index: int = 0, thorough: bool = True) -> Round:
    """Make a round."""
    return Round(index, 0, processes, thorough)


def take(probe: Probe, *processes: Process, thorough: bool = True) -> list[Sample]:
    """Open a probe, take one round, close it."""
    session = probe.open(context())
    try:
        return list(session.take(round_of(*processes, thorough=thorough)))
    finally:
        session.close()


def known(sample: Sample, kind: type[T]) -> T:
    """Return a sample's value, which must be known."""
    assert isinstance(sample.reading, Known), sample
    assert isinstance(sample.reading.value, kind)
    return sample.reading.value


def missing(sample: Sample) -> Missing:
    """Return a sample's reading, which must be missing."""
    assert isinstance(sample.reading, Missing), sample
    return sample.reading


def as_somebody_else(change: Callable[[], None], look: Callable[[], Any]) -> Any:
    """Run `look` in a child that first changed who it is; return what it found, through JSON."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            change()
            os.write(writable, json.dumps(look()).encode())
        finally:
            os._exit(0)
    os.close(writable)
    with os.fdopen(readable, "rb") as answer:
        found = answer.read()
    os.waitpid(child, 0)
    return json.loads(found)


def become_nobody() -> None:
    """Give up root for good."""
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
