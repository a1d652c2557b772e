"""Patients that are only slow: imports, slow reads, compilers."""

from __future__ import annotations

import importlib
import mmap
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.patients.build import kernels
from tests.patients.stage import SEVERAL_S, Stage, patient

MODULES = 40
SLOW_MODULE = "table = sorted(str(number * 7919 % 100003) for number in range(60000))\n"


@patient("slow-start", culprit="rank1")
def many_imports(stage: Stage) -> None:
    """Rank 1 imports one module after another, each with work of its own; rank 0 waits for it."""
    for number in range(MODULES):
        with Path(f"{stage.folder}/part{number}.py").open("w") as module:
            module.write(SLOW_MODULE)

    def rank(stage: Stage) -> None:
        sys.path.insert(0, stage.folder)
        stage.arrive("rank1")
        while True:
            for number in range(MODULES):
                importlib.import_module(f"part{number}")
                del sys.modules[f"part{number}"]

    stage.two_ranks(rank)


@patient("slow-start", "undetermined")
def slow_reads(stage: Stage) -> None:
    """Rank 1 reads at a steady, slow pace; rank 0 waits for it."""

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        with Path("/dev/zero").open("rb", buffering=0) as weights:
            while True:
                weights.read(1 << 20)
                time.sleep(SEVERAL_S)

    stage.two_ranks(rank)


@patient("slow-start", "undetermined")
def page_faults(stage: Stage) -> None:
    """Rank 1 touches mapped pages and nothing else."""

    def rank(stage: Stage) -> None:
        pages = mmap.mmap(-1, 1 << 24)
        stage.arrive("rank1")
        while True:
            for offset in range(0, 1 << 24, 4096):
                pages[offset] = 1
            pages.madvise(mmap.MADV_DONTNEED)

    stage.two_ranks(rank)


@patient("slow-start", culprit="rank1", needs="cc")
def compiler_child(stage: Stage) -> None:
    """Rank 1 waits in wait4 for a compiler, again and again; rank 0 waits for rank 1."""
    source = kernels(stage)

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        while True:
            subprocess.run(["cc", "-O2", "-c", source, "-o", os.devnull], check=True)

    stage.two_ranks(rank)


SHARD_BYTES, CHUNK_BYTES = 32 << 20, 1 << 18


def shard(stage: Stage) -> str:
    path = f"{stage.folder}/shard"
    with Path(path).open("wb") as file:
        for _ in range(SHARD_BYTES // CHUNK_BYTES):
            file.write(os.urandom(CHUNK_BYTES))
        os.fsync(file.fileno())
    return path


@patient("slow-start", "undetermined", goes_on=True)
def cold_reads(stage: Stage) -> None:
    """Rank 1 reads a file that is not in the page cache, piece by piece, at a slow disk's pace."""
    path = shard(stage)

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        with Path(path).open("rb", buffering=0) as weights:
            while True:
                os.posix_fadvise(weights.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                weights.seek(0)
                while weights.read(CHUNK_BYTES):
                    stage.beat()
                    time.sleep(SEVERAL_S)

    stage.two_ranks(rank)


@patient("slow-start", "undetermined", goes_on=True)
def mapped_weights(stage: Stage) -> None:
    """Rank 1 reads a mapped file page by page from the disk: no counter of reads moves, only its page faults do."""
    path = shard(stage)

    def rank(stage: Stage) -> None:
        file = os.open(path, os.O_RDONLY)
        stage.arrive("rank1")
        while True:
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            with mmap.mmap(file, SHARD_BYTES, prot=mmap.PROT_READ) as weights:
                for offset in range(0, SHARD_BYTES, CHUNK_BYTES):
                    sum(weights[offset : offset + CHUNK_BYTES : mmap.PAGESIZE])
                    stage.beat()
                    time.sleep(SEVERAL_S)

    stage.two_ranks(rank)


@patient("slow-start", "undetermined", "healthy", goes_on=True, burns=("rank1",))
def sorts_in_place(stage: Stage) -> None:
    """Rank 1 sorts a large list in place, again and again, holding the interpreter lock: CPU time is all that moves."""

    def rank(stage: Stage) -> None:
        numbers = [number * 7919 % 1_000_003 for number in range(1_000_000)]
        stage.arrive("rank1")
        while True:
            numbers.sort(key=(7919).__mul__)
            numbers.sort(key=(-1).__mul__)
            stage.beat()

    stage.two_ranks(rank)


@patient("slow-start", "undetermined", goes_on=True)
def growing_memory(stage: Stage) -> None:
    """Rank 1 does nothing but take memory, slowly."""

    def rank(stage: Stage) -> None:
        held: list[bytearray] = []
        stage.arrive("rank1")
        while True:
            held.append(bytearray(b"x") * (1 << 18))
            if len(held) > 400:
                held.clear()
            stage.beat()
            time.sleep(SEVERAL_S)

    stage.two_ranks(rank)


@patient("slow-start", "undetermined", goes_on=True, parts=("launcher", "rank0"))
def threads_that_load(stage: Stage) -> None:
    """Rank 0's main thread waits for a pool of threads that read weights."""
    path = shard(stage)

    def load() -> None:
        with Path(path).open("rb", buffering=0) as weights:
            while True:
                weights.seek(0)
                while weights.read(CHUNK_BYTES):
                    stage.beat()
                    time.sleep(SEVERAL_S)

    def rank() -> None:
        threads = [threading.Thread(target=load, daemon=True) for _ in range(3)]
        for thread in threads:
            thread.start()
        stage.arrive("rank0")
        for thread in threads:
            thread.join()

    stage.fork(rank)
    stage.wait()
