"""Small launches that hangdoc starts itself, and the commands that watch them."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.unit.cli.commands import LONGEST_S, argv, environment

DIES_WITH_HANGDOC = "import ctypes; ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL\n"
"""For launches of tests only, so that none is left behind by a test that fails."""

ECHOES = (
    DIES_WITH_HANGDOC
    + """
import os, signal, sys
def heard(number, _):
    os.write(1, signal.Signals(number).name.encode() + b"\\n")
for number in (1, 2, 3, 10, 12, 15):
    signal.signal(number, heard)
os.write(1, b"ready\\n")
while (line := os.read(0, 100).decode().split()):
    if line[0] == "exit": os._exit(int(line[1]))
    if line[0] == "kill": os.kill(os.getpid(), int(line[1]))
"""
)
"""Says which signals it hears, and ends as standard input tells it."""


def python(source: str) -> list[str]:
    return [sys.executable, "-ISc", source]


@contextmanager
def executed(*arguments: str, launch: list[str], **files: int) -> Iterator[subprocess.Popen[bytes]]:
    """A `watch --exec` that runs; standard streams are pipes unless given."""
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **files}
    command = argv("watch", "--exec", *arguments, "--", *launch)
    child = subprocess.Popen(command, env=environment(), start_new_session=True, **streams)
    try:
        yield child
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # the launch is in its process group
        child.communicate()


def line_of(descriptor: int) -> str:
    """The next line, as soon as it is there."""
    said = b""
    while not said.endswith(b"\n"):
        assert select.select([descriptor], [], [], LONGEST_S)[0], f"nothing came after {said!r}"
        piece = os.read(descriptor, 1)
        assert piece, f"it ended after {said!r}"
        said += piece
    return said.decode().strip()


def files_in(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(pattern)) if folder.is_dir() else []


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
