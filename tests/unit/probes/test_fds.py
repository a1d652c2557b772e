"""The fds probe on real processes."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hangdoc.model.fd import OpenFile, OpenFiles, PipeFill
from hangdoc.model.reading import Known, Missing
from hangdoc_probes import _descriptors, fds
from tests.unit.probes.targets import Target, context, known, missing, process_of, round_of, running, take

FILES = """
log = open(sys.argv[1], "w"); log.write("x" * 62); log.flush()
data = open(sys.argv[2], "w")
say("ready"); sys.stdin.read()
"""


def files(target: Target, *, thorough: bool = True) -> dict[int, OpenFile]:
    (sample,) = take(fds.PROBE, target.process, thorough=thorough)
    return {file.fd: file for file in known(sample, OpenFiles).files}


def named(found: dict[int, OpenFile], name: str) -> list[OpenFile]:
    return [file for file in found.values() if Path(file.target).name.removesuffix(" (deleted)") == name]


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Target]:
    """A program with a log and a data file open."""
    command = [sys.executable, "-c", "def say(word): print(word, flush=True)\nimport sys" + FILES]
    arguments = [str(tmp_path / "rank0.log"), str(tmp_path / "weights.bin")]
    child = subprocess.Popen([*command, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    target = Target(child)
    assert target.hear() == "ready"
    yield target
    child.kill()
    child.communicate()


def test_a_log_has_a_position_a_size_and_an_age(writer: Target) -> None:
    """A file that was written to tells how far, how large and when."""
    (log,) = named(files(writer), "rank0.log")
    assert (log.kind, log.access, log.position, log.size_bytes) == ("file", "w", Known(62), Known(62))
    assert isinstance(log.modified_wall_ns, Known)


def test_ordinary_rounds_look_at_outputs_and_logs_only(writer: Target) -> None:
    """Once the logs are known, a round that is not thorough reads descriptors 1 and 2 and the logs."""
    session = fds.PROBE.open(context())
    list(session.take(round_of(writer.process)))
    (sample,) = session.take(round_of(writer.process, thorough=False))
    session.close()
    found = known(sample, OpenFiles)
    assert not found.complete
    assert found.nvidia is None
    (log,) = named({file.fd: file for file in found.files}, "rank0.log")
    assert {file.fd for file in found.files} == {1, 2, log.fd}


def test_no_gpu_open_is_a_reading(writer: Target) -> None:
    """A complete look that finds no /dev/nvidia* says so with an empty list."""
    (sample,) = take(fds.PROBE, writer.process)
    found = known(sample, OpenFiles)
    assert found.complete
    assert found.nvidia == ()


def test_a_deleted_log_is_told(writer: Target, tmp_path: Path) -> None:
    """A log that was unlinked while it is written keeps being read, and is called deleted."""
    (tmp_path / "rank0.log").unlink()
    (log,) = named(files(writer), "rank0.log")
    assert log.deleted
    assert log.size_bytes == Known(62)


def test_a_full_pipe_is_told() -> None:
    """A pipe on descriptor 1 that nobody reads is as full as it can be, and looking changes nothing."""
    readable, writable = os.pipe()
    capacity = fcntl.fcntl(writable, fcntl.F_GETPIPE_SZ)
    os.set_blocking(writable, False)
    os.write(writable, bytes(capacity))
    child = subprocess.Popen(["/bin/sleep", "1000"], stdout=writable)
    try:
        for _ in range(2):
            (sample,) = take(fds.PROBE, process_of(child.pid))
            (output,) = (file for file in known(sample, OpenFiles).files if file.fd == 1)
            assert (output.kind, output.pipe) == ("pipe", Known(PipeFill(capacity, capacity)))
    finally:
        child.kill()
        child.wait()
        os.close(readable)
        os.close(writable)


def test_the_pipe_that_a_thread_writes_to_is_told_too() -> None:
    """Of other pipes than the outputs, those are asked how full they are to which a thread waits to write."""
    code = "import os\nread, write = os.pipe()\nother = os.pipe()\nprint(write, other[1], flush=True)\n"
    child = subprocess.Popen(
        [sys.executable, "-c", f"{code}while True: os.write(write, bytes(4096))"], stdout=subprocess.PIPE
    )
    try:
        target = Target(child)
        written, other = map(int, target.hear().split())
        while not isinstance((found := files(target))[written].pipe, Known):
            continue  # it is on its way into the write
        fill = found[written].pipe
        assert isinstance(fill, Known)
        assert fill.value.is_full
        assert found[other].pipe == Missing("fds", "not-taken", _descriptors.NOT_ASKED.detail)
    finally:
        child.kill()
        child.communicate()


def test_null_tty_socket_and_eventfd_have_their_kinds() -> None:
    """What a descriptor is shows in its kind; what has no size says why instead of 0."""
    code = """
import pty, socket
master, slave = pty.openpty(); kept = socket.socketpair(); event = os.eventfd(0); null = open(os.devnull)
say("ready"); sys.stdin.read()
"""
    with running(code) as target:
        found = files(target)
        assert {"null", "tty", "socket", "anon", "pipe"} <= {file.kind for file in found.values()}
        socket = next(file for file in found.values() if file.kind == "socket")
        assert isinstance(socket.size_bytes, Missing)


def test_a_named_pipe_is_a_pipe(tmp_path: Path) -> None:
    """A FIFO has a path, but no size and no position."""
    os.mkfifo(tmp_path / "fifo")
    with running(f"kept = os.open({str(tmp_path / 'fifo')!r}, os.O_RDWR)\nsay('ready'); sys.stdin.read()") as target:
        (fifo,) = named(files(target), "fifo")
        assert fifo.kind == "pipe"
        assert isinstance(fifo.position, Missing)


def test_a_zombie_has_no_list() -> None:
    """A zombie's files are closed: that is Missing, not an empty list."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    try:
        (sample,) = take(fds.PROBE, process_of(child))
        assert missing(sample).reason == "gone"
    finally:
        os.waitpid(child, 0)
