"""What reading a process's unwritten text costs: a Python process with 7 KB of it, and more and more mappings.

Run it with `python benchmarks/buffers.py`. Figures are printed, never asserted.
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

from targets import context, process, timed

from hangdoc.model.buffer import Buffers
from hangdoc.model.process import Process
from hangdoc.model.reading import Known
from hangdoc.sampling.probe import Round
from hangdoc_probes import buffers

TARGET = """
import mmap, os, sys
access = (mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE)
kept = [mmap.mmap(-1, 4096, prot=access[number % 2]) for number in range(int(sys.argv[1]))]
for number in range(700): print('line', number)
os.write(2, b'.')
os.read(0, 1)
"""


@contextmanager
def target(mappings: int) -> Iterator[Process]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-c", TARGET, str(mappings)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as child:
        try:
            assert child.stderr is not None
            assert child.stderr.read(1) == b"."
            yield process(child.pid)
        finally:
            child.kill()


def taken(one: Process) -> Buffers:
    session = buffers.PROBE.open(context(one))
    (sample,) = session.take(Round(0, 0, (one,), thorough=True))
    session.close()
    assert isinstance(sample.reading, Known), sample.reading
    assert isinstance(sample.reading.value, Buffers)
    return sample.reading.value


def cost(mappings: int, rounds: int) -> None:
    with target(mappings) as one:
        cpu_ms, wall_ms = [], []
        for _ in range(rounds):
            begun_s = time.perf_counter()
            spent_ms, found = timed(lambda: taken(one))
            cpu_ms.append(spent_ms)
            wall_ms.append((time.perf_counter() - begun_s) * 1e3)
        hidden = sum(text.size_bytes for text in found.python.value) if isinstance(found.python, Known) else None
        lines = len(Path(f"/proc/{one.key.pid}/maps").read_bytes().splitlines())
    print(
        f"{lines:6} mappings, {hidden} bytes hidden: {statistics.median(cpu_ms):6.2f} ms CPU,"
        f" {statistics.median(wall_ms):6.2f} ms wall a process (median of {rounds})"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=15, help="readings a row (default 15)")
    given = options.parse_args()
    for mappings in (0, 500, 3000):
        cost(mappings, given.rounds)


if __name__ == "__main__":
    main()
