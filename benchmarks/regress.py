"""How long `hangdoc regress` takes over many traces of 30 s with 8 ranks, and how large a trace is.

Run it with `python benchmarks/regress.py`; --traces 100 for a short one. The limits that it is held against: 1,000
traces in 60 s on two cores, and 1 MB for 8 ranks x 150 threads at 1 Hz for 60 s.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from recordings import hung_launch

from hangdoc.trace.codec import LIVE_LEVEL
from hangdoc.trace.records import Trace
from hangdoc.trace.redact import redact
from hangdoc.trace.writer import encode

DIFFERENT = 10
"""Recordings that differ; the others are copies of them, and each is read and replayed on its own."""


def size_of(trace: Trace, level: int) -> int:
    return len(encode(redact(trace), level))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=min(2, len(os.sched_getaffinity(0))))
    asked = parser.parse_args()
    minute = hung_launch(seconds=60)
    print(f"8 ranks x 150 threads, 60 s at 1 Hz: {size_of(minute, LIVE_LEVEL):,} bytes as recorded")
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "hangdoc", "regress", directory, "--jobs", str(asked.jobs)]
        record(Path(directory), asked.traces)
        subprocess.run(
            [*command, "--update", "--yes"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        )
        copy(Path(directory), asked.traces)
        before_s, begin_s = cpu_s(), time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        took_s, used_s = time.monotonic() - begin_s, cpu_s() - before_s
    largest_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(done.stdout.splitlines()[-1])
    print(
        f"{asked.traces} traces of 30 s, 8 ranks x 150 threads, {asked.jobs} processes: {took_s:.1f} s; "
        f"{1000 * used_s / asked.traces:.0f} ms of CPU time for each; largest process {largest_mib:.0f} MiB"
    )


def cpu_s() -> float:
    """CPU time of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def record(directory: Path, traces: int) -> None:
    for number in range(min(DIFFERENT, traces)):
        data = encode(redact(hung_launch(seed=number)), LIVE_LEVEL)
        (directory / f"{number:04}.hangtrace").write_bytes(data)


def copy(directory: Path, traces: int) -> None:
    for number in range(DIFFERENT, traces):
        for end in ("hangtrace", "expect.toml"):
            shutil.copyfile(directory / f"{number % DIFFERENT:04}.{end}", directory / f"{number:04}.{end}")


if __name__ == "__main__":
    main()
