"""Unseen patients that are well and burn CPU: computing, compiling, compressing, and one that polls."""

from __future__ import annotations

import gc
import mmap
import os
import socket
import subprocess
import time
import zlib
from pathlib import Path

from tests.patients.stage import SEVERAL_S, Stage, become, keep_open, patient
from tests.patients.unseen_props import build, log_to

SHARD_BYTES = 1 << 23

CRUNCHER = r"""
int main(int count, char **words) {
    double sum = 0;
    begin(words);
    arrive("rank1");
    for (long step = 1;; step++) {
        for (long i = 1; i < 20000000; i++) sum += 1.0 / ((double)i * i + step);
        printf("step %ld: loss %.12f\n", step, sum);
        fflush(stdout);
    }
}
"""

COMPILER = r"""
int main(int count, char **words) {
    double sum = 0;
    FILE *object = fopen(words[1], "w");
    for (long i = 1; i < 800000000; i++) {
        sum += 1.0 / ((double)i * i);
        if (i % 4000000 == 0) fprintf(object, "%.12f\n", sum);
    }
    return fclose(object);
}
"""

PIPELINE = "cat /dev/urandom | od -x | gzip -9 > {folder}/noise.gz & wait"
CHECKS = "while :; do for tool in a b c d; do /bin/true $tool; done; done"


@patient("healthy", "slow-start")
def shard_that_is_decompressed(stage: Stage) -> None:
    """Rank 1 decompresses a file piece by piece and writes what comes out, again and again; rank 0 waits for it."""
    packed, out = Path(stage.folder) / "shard.z", Path(stage.folder) / "shard"
    packed.write_bytes(zlib.compress(os.urandom(SHARD_BYTES // 2).hex().encode()))

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        while True:
            unpack = zlib.decompressobj()
            with packed.open("rb") as source, out.open("wb") as target:
                while piece := source.read(1 << 16):
                    target.write(unpack.decompress(piece))

    stage.two_ranks(rank)


@patient("healthy", "slow-start", needs="cc")
def numbers_with_a_line_for_each_step(stage: Stage) -> None:
    """Rank 1, in C, computes, and says so after each step, which takes a moment; rank 0 waits for it."""
    program = build(stage, CRUNCHER)

    def rank(stage: Stage) -> None:
        log_to(f"{stage.folder}/rank1.log")
        become(stage, program)

    stage.two_ranks(rank)


@patient("healthy", "slow-start", needs="cc")
def kernels_compiled_one_by_one(stage: Stage) -> None:
    """Rank 1 waits for one compiler after the other, each named cicc and seconds long; rank 0 waits for rank 1."""
    compiler = build(stage, COMPILER, name="cicc")

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        for number in range(1 << 30):
            subprocess.run([compiler, f"{stage.folder}/kernel{number % 8}.o"], check=True)

    stage.two_ranks(rank)


@patient("healthy", "slow-start")
def noise_through_a_pipeline(stage: Stage) -> None:
    """Rank 1 is a shell that waits for a pipeline of three programs, which ends in a file; rank 0 waits for rank 1."""

    def rank(stage: Stage) -> None:
        keep_open()
        stage.arrive("rank1")
        os.execv("/bin/sh", ["sh", "-c", PIPELINE.format(folder=stage.folder)])

    stage.two_ranks_in_memory(rank)


@patient("healthy", "slow-start", "undetermined")
def shell_that_checks_many_things(stage: Stage) -> None:
    """Rank 1 is a shell script that starts one short program after the other, hundreds a second."""

    def rank(stage: Stage) -> None:
        keep_open()
        stage.arrive("rank1")
        os.execv("/bin/sh", ["sh", "-c", CHECKS])

    stage.two_ranks_in_memory(rank)


class Node:
    """A cell of a list that runs in a circle: only the collector can free it."""

    def __init__(self, number: int) -> None:
        self.number, self.payload, self.itself = number, [number] * 50, self


@patient("healthy", "slow-start", "undetermined")
def collector_at_work(stage: Stage) -> None:
    """Rank 1 makes circles of objects and collects them, and does nothing else; rank 0 waits for it."""

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        kept: list[Node] = []
        while True:
            kept = [Node(number) for number in range(100_000)]
            del kept
            gc.collect()

    stage.two_ranks(rank)


@patient("healthy", "slow-start")
def weights_mapped_from_a_file(stage: Stage) -> None:
    """Rank 1 reads a mapped file page by page, lets go of the pages and reads it again; rank 0 waits for it."""
    weights = Path(stage.folder) / "weights"
    weights.write_bytes(os.urandom(SHARD_BYTES))

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        with weights.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as pages:
            while True:
                for offset in range(0, SHARD_BYTES, mmap.PAGESIZE):
                    pages[offset]
                pages.madvise(mmap.MADV_DONTNEED)
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                time.sleep(SEVERAL_S)

    stage.two_ranks(rank)


@patient("undetermined", "healthy", parts=("launcher", "rank1"))
def ring_in_shared_memory_without_a_request(stage: Stage) -> None:
    """Rank 1 yields its core again and again until its server puts a request into shared memory; no client comes."""
    ring = mmap.mmap(-1, mmap.PAGESIZE)

    def worker() -> None:
        stage.arrive("rank1")
        while ring[0] == 0:
            os.sched_yield()

    stage.fork(worker)
    server = socket.create_server(("127.0.0.1", 0))
    stage.arrive("launcher")
    server.accept()
    ring[0] = 1
