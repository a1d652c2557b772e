"""Native stacks of real processes that spin in a small C library: named, never left stopped, never of an unsafe one."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hangdoc.features.native import place_of
from hangdoc.model.reading import Known, Missing
from hangdoc.model.stack import Frame, Stack, Stacks
from hangdoc.procfs.stat import parse_stat
from hangdoc_probes import _pyspy, native
from tests.unit.probes.targets import Target, context, process_of, round_of, running

LIBRARY = "volatile int let_go;\nint cuStreamSynchronize(void *stream) { (void)stream; while (!let_go); return 0; }\n"
SPINS = """
import ctypes
library = ctypes.CDLL({library!r})
def forward():
    say("ready")
    library.cuStreamSynchronize(None)
forward()
"""
SLEEPS = """
import time
say("ready")
time.sleep(1000)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler (cc)")
    source = tmp_path_factory.mktemp("library") / "cuda.c"
    source.write_text(LIBRARY)
    built = source.with_name("libcuda.so.1")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(built), str(source)], check=True)
    return built


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take long to dump."""
    monkeypatch.setattr(native, "DEADLINE_S", 60.0)


@contextmanager
def spinning(library: Path) -> Iterator[Target]:
    with running(SPINS.format(library=str(library))) as target:
        yield target


def dumped(target: Target, table: list[Stack]) -> Stacks | Missing:
    session = native.open_session(context(table))
    try:
        (sample,) = session.take(round_of(target.process))
    finally:
        session.close()
    if isinstance(sample.reading, Missing):
        return sample.reading
    assert isinstance(sample.reading.value, Stacks)
    return sample.reading.value


def state(pid: int) -> str:
    return parse_stat(Path(f"/proc/{pid}/stat").read_bytes()).state


def test_a_wait_for_the_gpu_is_named(library: Path) -> None:
    """The innermost known function of the main thread is told, its Python caller too, and the target goes on."""
    table: list[Stack] = []
    with spinning(library) as target:
        found = dumped(target, table)
        assert state(target.pid) == "R"
    assert isinstance(found, Stacks), found
    stack = table[next(one.stack for one in found.threads if one.tid == target.pid)]
    place = place_of(stack)
    assert place is not None
    assert (place.frame.function, place.does) == ("cuStreamSynchronize", "waits for the GPU")
    assert "forward" in [frame.function for frame in stack]


def test_a_stopped_process_is_not_touched(library: Path) -> None:
    """A process with a thread in T is not dumped, and stays as it is."""
    with spinning(library) as target:
        os.kill(target.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, target.pid, os.WSTOPPED | os.WNOWAIT)
        found = dumped(target, [])
        assert state(target.pid) == "T"
    assert isinstance(found, Missing)
    assert found.reason == "not-taken"
    assert "state T" in found.detail


def test_a_tool_that_is_killed_midway_leaves_nothing_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that stops its target and then hangs is killed at the deadline, and the target is let go on."""
    program = tmp_path / "py-spy"
    program.write_text("#!/bin/sh\nfor word; do last=$word; done\nkill -STOP $last\nexec sleep 1000\n")
    program.chmod(0o700)
    monkeypatch.setattr(native, "DEADLINE_S", 1.0)
    monkeypatch.setattr(_pyspy, "find", lambda: program)
    with running(SLEEPS) as target:
        found = dumped(target, [])
        assert state(target.pid) in "SR"
    assert isinstance(found, Missing)
    assert found.reason == "timeout"


def test_a_tool_that_fails_leaves_nothing_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that stops its target and gives up is told with its own words, and the target is let go on."""
    program = tmp_path / "py-spy"
    program.write_text('#!/bin/sh\nfor word; do last=$word; done\nkill -STOP $last\necho "Error: broken" >&2\nexit 1\n')
    program.chmod(0o700)
    monkeypatch.setattr(_pyspy, "find", lambda: program)
    with running(SLEEPS) as target:
        found = dumped(target, [])
        assert state(target.pid) in "SR"
    assert isinstance(found, Missing)
    assert "broken" in found.detail


@pytest.mark.parametrize(
    ("function", "does"),
    [
        ("cuLaunchKernel", "launches"),
        ("cudaEventSynchronize", "waits for the GPU"),
        ("cuEventSynchronize", "waits for the GPU"),
        ("ncclGroupEnd", "NCCL"),
        ("pncclAllReduce", "NCCL"),
        ("ncclCommInitRankConfig", "communicator"),
        ("vllm::CustomAllreduce::allreduce<half>", "custom all-reduce"),
        ("sched_yield", "yields"),
    ],
)
def test_places_that_are_known(function: str, does: str) -> None:
    """Waits of CUDA, NCCL, custom all-reduce and the kernel are known by their functions."""
    place = place_of((Frame("0x7f0012", "libcuda.so.1", 0), Frame(function, "libcuda.so.1", 0)))
    assert place is not None
    assert does in place.does


def test_other_functions_are_not_known() -> None:
    """What only looks like one of them is none."""
    assert place_of((Frame("my_cuStreamSynchronize", "x.so", 0), Frame("forward", "a.py", 1))) is None


def test_it_is_in_no_round() -> None:
    """Nothing takes native stacks by itself."""
    assert native.PROBE.on_request
    assert isinstance(native.PROBE.check(Path("/proc")), Known | Missing)


def test_whoever_has_the_number_now_is_not_stopped(library: Path) -> None:
    """A process that has got the pid of a rank since is not dumped."""
    session = native.open_session(context([]))
    with spinning(library) as target:
        (sample,) = session.take(round_of(process_of(target.pid, start_ticks=1)))
    session.close()
    assert isinstance(sample.reading, Missing)
    assert sample.reading.reason == "gone"
