"""Patients that are only slow: imports, slow reads, compilers."""

from __future__ import annotations

import importlib
import mmap
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.patients.stage import SEVERAL_S, Stage, patient

MODULES = 40
SLOW_MODULE = "table = sorted(str(number * 7919 % 100003) for number in range(60000))\n"
FUNCTION = "double f{n}(double x) {{ for (int i = 0; i < 9; i++) x = x * {n}.5 + i / (x + 2); return x; }}\n"
FUNCTIONS = 1500


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
    source = f"{stage.folder}/kernels.c"
    with Path(source).open("w") as file:
        file.writelines(FUNCTION.format(n=n) for n in range(FUNCTIONS))

    def rank(stage: Stage) -> None:
        stage.arrive("rank1")
        while True:
            subprocess.run(["cc", "-O2", "-c", source, "-o", os.devnull], check=True)

    stage.two_ranks(rank)
