"""What the benchmarks share: a running process as the roster knows it, and what a probe is opened with."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from hangdoc.model.process import Launch, Process, ProcessKey
from hangdoc.procfs.stat import parse_stat
from hangdoc.sampling.probe import Context

T = TypeVar("T")


def process(pid: int) -> Process:
    line = parse_stat(Path(f"/proc/{pid}/stat").read_bytes())
    return Process(key=ProcessKey(pid, line.start_ticks), ppid=line.ppid, role="other")


def launch_of(*processes: Process) -> Launch:
    return Launch(root=processes[0].key, engine="generic", processes=processes)


def context(*processes: Process) -> Context:
    return Context(launch=launch_of(*processes), intern=lambda _: 0)


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Return the CPU time that some work takes in this thread, in ms, and what it returns."""
    before_ns = time.thread_time_ns()
    found = work()
    return (time.thread_time_ns() - before_ns) / 1e6, found
