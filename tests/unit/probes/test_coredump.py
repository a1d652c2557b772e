"""Asking for CUDA core dumps: a process stands for CUDA at the other end of the pipe, a script for cuda-gdb."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from hangdoc.logs.cuda_gdb import kernels_of
from hangdoc.model.kernel_dump import KernelDump
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Payload
from hangdoc.trace import wording
from hangdoc.trace.tokens import Tokens
from hangdoc_probes import coredump
from tests.unit.probes.targets import context, process_of, round_of

CUDA = """
import os, sys
directory = sys.argv[1]
pipe = f"{directory}/pipe.{os.getpid()}"
os.mkfifo(pipe)
end = os.open(pipe, os.O_RDWR)
print("ready", flush=True)
os.read(end, 1)
if sys.argv[2] == "dumps":
    with open(f"{directory}/core.{os.getpid()}", "wb") as file: file.write(b"x" * 4096)
os.read(end, 1)
"""
TABLE = """Opening GPU coredump: core.1
  Kernel Parent Dev Grid Status SMs Mask GridDim BlockDim Invocation
*      0      -   0    1 Active 0x00000001 (1,1,1) (1,1,1) at::cuda::spin_kernel(cycles=5)
       1      -   0    2 Active 0x00000002 (8,1,1) (512,1,1) ncclDevKernel_AllReduce_Sum_bf16_RING_LL
"""


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take long; a file that is whole at once need not be watched for long."""
    monkeypatch.setattr(coredump, "WRITTEN_S", 60.0)
    monkeypatch.setattr(coredump, "STILL_S", 0.1)


@contextmanager
def cuda(directory: Path, does: str = "dumps", **extra: str) -> Iterator[int]:
    environment = {
        **os.environ,
        "CUDA_ENABLE_USER_TRIGGERED_COREDUMP": "1",
        "CUDA_COREDUMP_PIPE": f"{directory}/pipe.%p",
        "CUDA_COREDUMP_FILE": f"{directory}/core.%p",
        **extra,
    }
    argv = [sys.executable, "-c", CUDA, str(directory), does]
    child = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        yield child.pid
    finally:
        child.kill()
        child.communicate()


def debugger(directory: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    program = directory / "cuda-gdb"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")


def asked(pid: int) -> Reading[Payload]:
    rank = replace(process_of(pid), role="scheduler")
    (sample,) = coredump.open_session(context()).take(round_of(rank))
    return sample.reading


def test_the_stuck_kernel_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the launch's own pipe comes a dump, and cuda-gdb names its kernels."""
    debugger(tmp_path, monkeypatch, f"cat <<'END'\n{TABLE}END")
    with cuda(tmp_path) as pid:
        reading = asked(pid)
    assert isinstance(reading, Known), reading
    assert isinstance(reading.value, KernelDump)
    assert reading.value.size_bytes == 4096
    names = ("at::cuda::spin_kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL")
    assert reading.value.kernels == Known(names)


def test_without_cuda_gdb_the_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The dump is there all the same, and the remedy says how to open it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with cuda(tmp_path) as pid:
        reading = asked(pid)
    assert isinstance(reading, Known), reading
    assert isinstance(reading.value, KernelDump)
    assert isinstance(reading.value.kernels, Missing)
    assert reading.value.file.endswith(f"core.{pid}")


def test_a_debugger_that_hangs_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """cuda-gdb has a deadline."""
    monkeypatch.setattr(coredump, "NAMED_S", 0.2)
    debugger(tmp_path, monkeypatch, "exec sleep 1000")
    with cuda(tmp_path) as pid:
        reading = asked(pid)
    assert isinstance(reading, Known), reading
    assert isinstance(reading.value, KernelDump)
    assert isinstance(reading.value.kernels, Missing)
    assert reading.value.kernels.reason == "timeout"


def test_a_launch_that_was_not_started_for_it_is_not_asked(tmp_path: Path) -> None:
    """Without the variable nothing is written anywhere, and the remedy says how to start it."""
    with cuda(tmp_path, CUDA_ENABLE_USER_TRIGGERED_COREDUMP="0") as pid:
        reading = asked(pid)
    assert reading == coredump.NOT_ENABLED


def test_a_dump_that_never_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait for a dump ends."""
    monkeypatch.setattr(coredump, "WRITTEN_S", 0.3)
    with cuda(tmp_path, "nothing") as pid:
        reading = asked(pid)
    assert isinstance(reading, Missing)
    assert reading.reason == "timeout"


@pytest.mark.parametrize("kind", ["nothing", "fifo", "file"])
def test_a_pipe_that_nobody_reads(tmp_path: Path, kind: str) -> None:
    """A pipe without a reader, none at all, or a file in its place is told, and nobody waits for it."""
    other = tmp_path / "other"
    if kind == "fifo":
        os.mkfifo(other)
    elif kind == "file":
        other.touch()
    with cuda(tmp_path, CUDA_COREDUMP_PIPE=str(other)) as pid:
        reading = asked(pid)
    assert isinstance(reading, Missing)
    assert "pipe" in reading.detail
    assert kind != "file" or not other.read_bytes()


def test_an_old_dump_is_not_taken_for_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that was there before it was asked for does not count."""
    monkeypatch.setattr(coredump, "WRITTEN_S", 0.3)
    with cuda(tmp_path, "nothing") as pid:
        old = tmp_path / f"core.{pid}"
        old.write_bytes(b"old")
        os.utime(old, (1, 1))
        assert isinstance(asked(pid), Missing)


def test_what_it_says_stays_in_a_recording() -> None:
    """Sentences of missing readings are made of known words."""
    texts = [coredump.NOT_ENABLED.detail, coredump.NOT_INSTALLED.detail, coredump.NOT_INSTALLED.remedy]
    texts += ["nobody reads the pipe for dumps: CUDA was not started yet, or has ended", "cuda-gdb named no kernel"]
    assert [text for text in texts if wording.sentence(Tokens(), text) != text] == []


def test_text_without_kernels() -> None:
    """A debugger that complains names none."""
    assert kernels_of("cuda-gdb: core.1: No such file") == ()


def test_whoever_has_the_number_now_is_not_asked(tmp_path: Path) -> None:
    """Nothing is written into the pipe of a process that has got the pid of a rank since."""
    with cuda(tmp_path) as pid:
        rank = replace(process_of(pid, start_ticks=1), role="scheduler")
        (sample,) = coredump.open_session(context()).take(round_of(rank))
        assert not list(tmp_path.glob("core.*"))
    assert isinstance(sample.reading, Missing)
    assert sample.reading.reason == "gone"
