"""How fast samples of hidden states reach a directory: the writer alone, on the CPU, with the server's Python.

python -m benchmarks.capture DIRECTORY [--hidden 7168 --tokens 2048 --samples 8]; the samples are removed at the end.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path

import torch

from hangdoc.capture.assemble import Chunk, Sample
from hangdoc.capture.formats import SAVES
from hangdoc.capture.layout import RECORDS
from hangdoc.capture.passes import Portion
from hangdoc.capture.store import Store
from hangdoc.capture.tally import Tally
from hangdoc.capture.writer import Writer

LAYERS = 3


def sample(number: int, hidden: int, tokens: int) -> Sample:
    states = tuple(torch.randn(tokens, hidden).to(torch.bfloat16) for _ in range(LAYERS + 1))
    portion = Portion(str(number), range(tokens), 0, 0, tokens, index=number)
    return Sample(portion, [Chunk(states[:LAYERS], states[-1], None, 0, tokens)])


def measure(directory: Path, form: str, samples: list[Sample]) -> None:
    (directory / RECORDS).mkdir(parents=True)
    size = sum(one.size_bytes for one in samples)
    writer = Writer(Store(directory, form), Tally(directory, {}), queue_bytes=size)
    began, cpu, all_cpu = time.perf_counter(), time.thread_time(), time.process_time()
    for one in samples:
        writer.wait_for_room()
        writer.offer(one)
    offered_s, offered_cpu_s = time.perf_counter() - began, time.thread_time() - cpu
    writer.finish()
    lasted_s, worked_s = time.perf_counter() - began, time.process_time() - all_cpu
    print(
        f"{form}: {size / 1e9:.2f} GB in {lasted_s:.2f} s, {size / 1e9 / lasted_s:.2f} GB/s ({size / 1e9 / worked_s:.2f} GB a CPU second); "
        f"the forward thread waited {offered_s * 1e3 / len(samples):.2f} ms a sample ({offered_cpu_s * 1e3:.2f} ms CPU)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--hidden", type=int, default=7168)
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--samples", type=int, default=8)
    given = parser.parse_args()
    torch.set_num_threads(1)
    samples = [sample(number, given.hidden, given.tokens) for number in range(given.samples)]
    print(f"{given.samples} samples of {samples[0].size_bytes / 1e6:.0f} MB, load {os.getloadavg()[0]:.1f}")
    for form in SAVES:
        root = Path(tempfile.mkdtemp(dir=given.directory))
        try:
            measure(root / form, form, samples)
        finally:
            shutil.rmtree(root)


if __name__ == "__main__":
    main()
