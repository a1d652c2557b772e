"""What reading a process's buffers costs hangdoc, and what it costs the process: the gaps of a heartbeat in it.

Figures are printed, never asserted. The target is a Python process with 7 KB of unwritten text and a thread that beats
as fast as it can sleep; it tells the largest and the median gap between two beats. Phases with and without the probe
alternate, so that whatever else the machine does falls on both.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hangdoc.model.buffer import Buffers
from hangdoc.model.process import Launch, Process, ProcessKey
from hangdoc.model.reading import Known
from hangdoc.procfs.stat import parse_stat
from hangdoc.sampling.probe import Context, Round
from hangdoc_probes import buffers

TARGET = """
import mmap, os, sys, threading, time
access = (mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE)
kept = [mmap.mmap(-1, 4096, prot=access[number % 2]) for number in range(int(sys.argv[1]))]
for number in range(700): print('line', number)
gaps = []
def beat():
    last = time.perf_counter()
    while True:
        time.sleep(0.0005)
        now = time.perf_counter()
        gaps.append(now - last)
        last = now
threading.Thread(target=beat, daemon=True).start()
while True:
    os.write(2, b'.')
    if not os.read(0, 1): break
    taken, gaps[:] = sorted(gaps) or [0.0], []
    os.write(2, f'{taken[-1] * 1e3:.3f} {taken[len(taken) // 2] * 1e3:.3f}\\n'.encode())
"""


class Target:
    """A running target."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self.child = child
        stat = parse_stat(Path(f"/proc/{child.pid}/stat").read_bytes())
        self.process = Process(key=ProcessKey(child.pid, stat.start_ticks), ppid=stat.ppid, role="other")

    def gaps_ms(self) -> tuple[float, float]:
        """Return the largest and the median gap since the last question."""
        assert self.child.stdin is not None
        assert self.child.stderr is not None
        self.child.stdin.write(b"?")
        self.child.stdin.flush()
        largest, median = map(float, self.child.stderr.readline().lstrip(b".").split())
        return largest, median


@contextmanager
def target(mappings: int) -> Iterator[Target]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-c", TARGET, str(mappings)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as child:
        try:
            assert child.stderr is not None
            assert child.stderr.read(1) == b"."
            yield Target(child)
        finally:
            child.kill()


def taken(process: Process) -> Buffers:
    context = Context(launch=Launch(root=process.key, engine="generic"), intern=lambda _: 0)
    session = buffers.PROBE.open(context)
    (sample,) = session.take(Round(0, 0, (process,), thorough=True))
    session.close()
    assert isinstance(sample.reading, Known), sample.reading
    assert isinstance(sample.reading.value, Buffers)
    return sample.reading.value


def cost(mappings: int, rounds: int) -> None:
    with target(mappings) as one:
        cpu_ms, wall_ms = [], []
        for _ in range(rounds):
            begun = time.thread_time(), time.perf_counter()
            found = taken(one.process)
            cpu_ms.append((time.thread_time() - begun[0]) * 1e3)
            wall_ms.append((time.perf_counter() - begun[1]) * 1e3)
        hidden = sum(text.size_bytes for text in found.python.value) if isinstance(found.python, Known) else None
        lines = len(Path(f"/proc/{one.process.key.pid}/maps").read_bytes().splitlines())
    print(
        f"{lines:6} mappings, {hidden} bytes hidden: {statistics.median(cpu_ms):6.2f} ms CPU,"
        f" {statistics.median(wall_ms):6.2f} ms wall a process (median of {rounds})"
    )


def heartbeat(phases: int, phase_s: float, pause_s: float) -> None:
    """Print the gaps in a target that nobody reads, beside one that is read, and that is itself read.

    The second row is the control: the same work of hangdoc on the same processors, and another process's memory.
    """
    names = ("nobody reads", "another is read", "it is read")
    gaps: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    with target(0) as one, target(0) as another:
        subjects = dict(zip(names, (None, another.process, one.process), strict=True))
        for number in range(len(names) * phases):
            name = names[number % len(names)]
            one.gaps_ms()
            phase(subjects[name], phase_s, pause_s)
            gaps[name].append(one.gaps_ms())
    print(f"gaps of a heartbeat in the target, ms, {phases} phases of {phase_s:g} s each, alternating:")
    for name, found in gaps.items():
        largest = [gap for gap, _ in found]
        print(
            f"  {name:16} largest {max(largest):6.2f}, median of the phases' largest {statistics.median(largest):6.2f},"
            f" median {statistics.median(gap for _, gap in found):5.2f}"
        )


def phase(subject: Process | None, phase_s: float, pause_s: float) -> None:
    end_s = time.monotonic() + phase_s
    while time.monotonic() < end_s:
        if subject is not None:
            taken(subject)
        time.sleep(pause_s)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=15, help="readings a row (default 15)")
    options.add_argument("--phases", type=int, default=5, help="phases with and without each (default 5)")
    options.add_argument("--phase-s", type=float, default=2.0, help="length of a phase (default 2)")
    options.add_argument("--pause-s", type=float, default=0.05, help="between two readings (default 0.05)")
    given = options.parse_args()
    for mappings in (0, 500, 3000):
        cost(mappings, given.rounds)
    heartbeat(given.phases, given.phase_s, given.pause_s)


if __name__ == "__main__":
    main()
