"""Run the real command line in a process of its own, and the small programs that it looks at."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hangdoc.errors import HangdocError
from hangdoc.trace.reader import read

REPOSITORY = Path(__file__).resolve().parents[3]
PROGRAM = "from hangdoc.cli.main import main; main()"
LONGEST_S = 120.0
"""Nothing here may take longer, whatever the machine is doing; no test passes or fails by a time."""


@dataclass(frozen=True)
class Ended:
    """What a command said and its exit code."""

    code: int
    out: str
    err: str


def argv(*arguments: str, python: str = sys.executable) -> list[str]:
    return [python, "-c", PROGRAM, *arguments]


def run(*arguments: str, prefix: Sequence[str] = (), python: str = sys.executable, **env: str) -> Ended:
    done = subprocess.run(
        [*prefix, *argv(*arguments, python=python)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=LONGEST_S,
        env={**environment(), **env},
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def environment() -> dict[str, str]:
    kept: Mapping[str, str] = os.environ
    return {name: value for name, value in kept.items() if name not in ("HANGDOC_DEBUG", "NO_COLOR", "COLUMNS")}


def complaint(ended: Ended) -> str:
    """The one clear line of a failed command: nothing on standard output, no traceback."""
    assert ended.out == ""
    assert "Traceback" not in ended.err
    lines = ended.err.splitlines()
    assert len(lines) == 1, ended.err
    assert lines[0].startswith("hangdoc: ")
    return lines[0]


@contextmanager
def program(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program in a session of its own that is ill as soon as it has printed a byte; killed at the end."""
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert child.stdout is not None
        assert select.select([child.stdout], [], [], LONGEST_S)[0]
        assert os.read(child.stdout.fileno(), 1)
        yield child
    finally:
        child.kill()
        child.wait()
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                stream.close()


def python(source: str) -> tuple[str, ...]:
    return (sys.executable, "-IS", "-c", source)


SPINS = """
import ctypes, os
def spin():
    while True:
        pass
def rank(work):
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
        work()
reading, writing = os.pipe()
rank(lambda: (os.close(writing), os.read(reading, 1)))
rank(spin)
os.close(writing)
print("x", flush=True)
os.wait()
"""
"""A rank that goes round a loop without a way out, another that waits for its word on a pipe, and their parent."""
WAITS = "import sys; print('x', flush=True); sys.stdin.read()"


def wait_until(is_true: Callable[[], bool]) -> None:
    """Wait for something that another process brings about."""
    deadline_s = time.monotonic() + LONGEST_S
    while not is_true():
        assert time.monotonic() < deadline_s, "it never came about"
        select.select([], [], [], 0.02)


def start(*arguments: str, **env: str) -> subprocess.Popen[bytes]:
    """Start a command whose output is read later."""
    return subprocess.Popen(
        argv(*arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**environment(), **env},
        start_new_session=True,
    )


def rounds_in(trace: Path) -> int:
    """How many rounds a recording that goes on has so far."""
    try:
        return len(read(trace).snapshots)
    except HangdocError:
        return 0
