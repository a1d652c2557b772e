"""What it costs to merge the stacks of 100,000 ranks into classes.

Run it with `python benchmarks/merge.py`. Figures are printed, never asserted. The stacks are artificial, as in
STATBench: a program of a given depth, in which most ranks wait in one collective and a few are spread over places of
their own. Two forms: interned, as a trace holds them (equal stacks are one object), and each rank with an object of
its own, as they would come from as many files. Seconds by the clock, and of CPU time: on a busy machine only the latter
says what merging costs.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time

from hangdoc.features.ranks import merge
from hangdoc.model.stack import Frame, Stack

C10D = "site-packages/torch/distributed/distributed_c10d.py"
LINES = 4
"""Lines at which one function is seen: ranks of one class need not be at one line."""


def table(places: int, depth: int, seed: random.Random) -> list[Stack]:
    """Make a table of stacks: one place is a barrier, the others part from its stack at a random depth."""
    base = [(f"f{level}", f"engine/module_{level % 7}.py") for level in range(depth)]
    found: list[Stack] = []
    for place in range(places):
        parts_at = depth if place == 0 else seed.randrange(2, depth)
        own = [(f"place{place}_{level}", "engine/own.py") for level in range(depth - parts_at)]
        path = [*base[:parts_at], *own, *([("barrier", C10D)] if place == 0 else [])]
        found += [
            tuple(Frame(function, file, line) for function, file in reversed(path)) for line in range(1, LINES + 1)
        ]
    return found


def ranks(stacks: list[Stack], count: int, share: float, seed: random.Random) -> list[tuple[int, Stack]]:
    """Give each rank a stack: that share of them one of the first place's."""
    odd = range(LINES, len(stacks))
    return [
        (rank, stacks[seed.randrange(LINES) if seed.random() < share or not odd else seed.choice(odd)])
        for rank in range(count)
    ]


def own(found: list[tuple[int, Stack]]) -> list[tuple[int, Stack]]:
    """Return the same with an object of its own for each rank and each frame."""
    return [(rank, tuple(Frame(one.function, one.file, one.line) for one in stack)) for rank, stack in found]


def measure(name: str, found: list[tuple[int, Stack]], rounds: int) -> None:
    spent, used = [], []
    for _ in range(rounds):
        begun, begun_cpu = time.perf_counter(), time.process_time()
        classes = merge(found)
        spent.append(time.perf_counter() - begun)
        used.append(time.process_time() - begun_cpu)
    sizes = sorted(map(len, classes.values()), reverse=True)
    times = "".join(f"{figure:10.3f}" for figure in (min(spent), statistics.median(spent), statistics.median(used)))
    print(f"{name:34}{len(classes):9}{sizes[0]:9}{times}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--ranks", type=int, default=100_000, help="ranks (default 100,000)")
    options.add_argument("--depth", type=int, default=24, help="frames of a stack (default 24)")
    options.add_argument("--rounds", type=int, default=5, help="measurements of each (default 5)")
    given = options.parse_args()
    print(f"{f'{given.ranks:,} stacks of {given.depth} frames':34}  classes  largest   least s  median s     CPU s")
    for places, share in ((1, 1.0), (10, 0.99), (1000, 0.9)):
        seed = random.Random(1)
        found = ranks(table(places, given.depth, seed), given.ranks, share, seed)
        measure(f"{places} places, interned", found, given.rounds)
        measure(f"{places} places, an object each", own(found), given.rounds)


if __name__ == "__main__":
    main()
