"""Programs that wait for locks, in C, in C++ and on every CPython found; how they are looked at."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hangdoc.model.locks import FutexWait, Locks, PythonLock
from hangdoc.model.reading import Known, Reading
from hangdoc.sampling.probe import Session
from hangdoc_probes import locks
from tests.unit.probes.targets import context, process_of, round_of

HERE = Path(__file__).parent
PATIENCE_S = 60.0
"""A safety net, far above the moment in which a thread comes to where it says it will wait."""

VERSIONS = (9, 10, 11, 12, 13)
EXACT = {9: "3.9.18", 10: "3.10.13", 11: "3.11.7", 12: "3.12.1", 13: "3.13.0"}

PREAMBLE = """
import ctypes, sys, threading, queue
def say(name): sys.stdout.write(f"{name} {threading.get_native_id()}\\n"); sys.stdout.flush()
def start(act, *arguments): threading.Thread(target=act, args=arguments, daemon=True).start()
def stay(): say("ready"); threading.Event().wait()
"""


class Target:
    """A running program: pid, and the tids of the threads it has named."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self.pid = child.pid
        self.child = child
        self.tids: dict[str, int] = {}

    def hear(self, *names: str) -> None:
        """Wait until all these names have been said."""
        assert self.child.stdout is not None
        while not set(names) <= self.tids.keys():
            line = self.child.stdout.readline()
            assert line, "the program ended"
            name, tid = line.split()
            self.tids[name] = int(tid)


@contextmanager
def running(*command: str) -> Iterator[Target]:
    """Run a program until the test is done with it."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield Target(child)
    finally:
        child.kill()
        child.communicate()


@contextmanager
def python(interpreter: str, code: str) -> Iterator[Target]:
    """Run Python code until the test is done with it; it says "ready" by stay()."""
    with running(interpreter, "-S", "-c", PREAMBLE + code) as target:
        target.hear("ready")
        yield target


def compiled(source: str, folder: Path, *command: str) -> str:
    """Compile a program of this folder."""
    program = folder / Path(source).stem
    subprocess.run([*command, "-o", str(program), str(HERE / source), "-pthread"], check=True)
    return str(program)


def interpreters() -> list[tuple[str, str]]:
    """Name every CPython of a known layout: (test id, path); the path of an absent one is empty."""
    found = []
    for minor in VERSIONS:
        exact = EXACT[minor]
        path = Path.home() / f".pyenv/versions/{exact}/bin/python3.{minor}"
        found.append((f"pyenv-{exact}", str(path) if path.exists() else ""))
    for minor in VERSIONS:
        path = Path(f"/usr/bin/python3.{minor}")
        if path.exists():
            found.append((f"system-3.{minor}", str(path)))
    return found


def look(pid: int, session: Session | None = None) -> Locks:
    """Take the probe's reading of one process."""
    opened = session or locks.PROBE.open(context())
    (sample,) = opened.take(round_of(process_of(pid)))
    assert isinstance(sample.reading, Known), sample
    assert isinstance(sample.reading.value, Locks)
    return sample.reading.value


def until(pid: int, holds: Callable[[Locks], bool]) -> Locks:
    """Look until what the program has announced can be seen: it says so just before it waits."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not holds(seen := look(pid)):
        assert time.monotonic() < deadline_s, seen
    return seen


def wait_of(seen: Locks, tid: int) -> FutexWait:
    """Return what a thread waits for."""
    return next(one for one in seen.futexes if one.tid == tid)


def value(reading: Reading[tuple[PythonLock, ...]]) -> tuple[PythonLock, ...]:
    """Return the Python locks, which must be known."""
    assert isinstance(reading, Known), reading
    return reading.value


def waiting(seen: Locks) -> frozenset[int]:
    """Return the threads that wait for a futex."""
    return frozenset(one.tid for one in seen.futexes)
