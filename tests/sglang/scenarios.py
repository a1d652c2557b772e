"""The launches that the tests know: what is wrong with each, what brings it about and the signs that it has set in."""

from __future__ import annotations

import enum
from dataclasses import dataclass

NEWEST = "0.5.23"
OLD = "0.5.8"


@dataclass(frozen=True)
class Log:
    """A regular expression that some text of the server's log matches."""

    pattern: str


@dataclass(frozen=True)
class Mark:
    """A mark that a process of the launch has set: the rank that turns ill (or waits), or `import.launcher`, ..."""

    name: str


Sign = Log | Mark

READY = Log(r"The server is fired up and ready to roll!")
LAUNCHER_IMPORTS = Mark("import.launcher")
CHILD_IMPORTS = Mark("import.child")


class Doing(enum.Enum):
    """What a main thread does, as the kernel sees it."""

    SPINS = "uses processor time all the while"
    WAITS = "sleeps and is never woken"
    WAKES = "sleeps and is woken now and then"


SPINS, WAITS, WAKES = Doing


@dataclass(frozen=True)
class Scenario:
    """One way to launch the server; `flags` may name {dist_port}, a free port."""

    name: str
    illness: str
    ill_when: tuple[Sign, ...]
    inject: str = ""
    tp: int = 1
    ill_rank: int = 0
    flags: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    versions: tuple[str, ...] = (NEWEST,)
    # What each rank's main thread does once the signs are there; empty where it changes from look to look.
    ranks: tuple[Doing, ...] = ()
    # Over after a while by itself, so it must be looked at from its start.
    passing: bool = False


LIST = (
    Scenario(
        "healthy-tp1",
        "none; on the way the launcher and then its children are seen importing",
        (READY,),
        versions=(NEWEST, OLD),
        passing=True,
        ranks=(SPINS,),
    ),
    Scenario("healthy-tp2", "none", (READY,), tp=2),
    Scenario(
        "healthy-metrics", "none; it counts what it serves", (READY,), flags=("--enable-metrics",), ranks=(SPINS,)
    ),
    Scenario(
        "busy-init",
        "a Python loop in the model's __init__ never ends",
        (Mark("0"),),
        inject="busy_init.py",
        versions=(NEWEST, OLD),
        ranks=(SPINS,),
    ),
    Scenario(
        "busy-warmup",
        "a Python loop in the first forward (the warm-up request) never ends",
        (Mark("0"),),
        inject="busy_warmup.py",
        versions=(NEWEST, OLD),
        ranks=(SPINS,),
    ),
    Scenario(
        "busy-between-batches",
        "with the warm-up request at hand, a Python loop under the scheduler's event loop never ends",
        (Mark("0"),),
        inject="busy_between_batches.py",
        ranks=(SPINS,),
    ),
    Scenario(
        "proxied-warmup",
        "the launcher's warm-up request goes to a proxy that nobody listens for",
        (Log(r"Uvicorn running on"),),
        environment=(("HTTP_PROXY", "http://127.0.0.1:9"), ("NO_PROXY", "")),
        # It gives up after 120 tries, and ends.
        passing=True,
        ranks=(SPINS,),
    ),
    Scenario(
        "busy-one-rank",
        "rank 1 loops in the model's __init__, rank 0 has loaded and waits for it in the barrier",
        (Mark("1"), Log(r"TP0\] Load weight end")),
        inject="busy_init.py",
        tp=2,
        ill_rank=1,
        ranks=(WAITS, SPINS),
    ),
    Scenario(
        "absent-warmup",
        "rank 1 stays out of the first forward's collectives, rank 0 waits in one",
        (Mark("1"), Mark("0")),
        inject="absent_warmup.py",
        tp=2,
        ill_rank=1,
        ranks=(WAITS, WAITS),
    ),
    Scenario(
        "absent-barrier",
        "rank 1 never reaches the barrier after the load, rank 0 waits in it",
        (Mark("1"), Log(r"TP0\] Load weight end")),
        inject="absent_barrier.py",
        tp=2,
        ill_rank=1,
        versions=(NEWEST, OLD),
        ranks=(WAITS, WAITS),
    ),
    Scenario(
        "absent-allreduce",
        "rank 1 stays out of an all_reduce at the end of the load, rank 0 waits in it",
        (Mark("1"), Mark("0")),
        inject="absent_allreduce.py",
        tp=2,
        ill_rank=1,
        ranks=(WAITS, WAITS),
    ),
    Scenario(
        "blocked-fifo",
        "the load waits in read(2) for a FIFO into which no one writes",
        (Mark("0"),),
        inject="blocked_fifo.py",
        versions=(NEWEST, OLD),
        ranks=(WAITS,),
    ),
    Scenario(
        "blocked-lock",
        "the load waits for a lock that its own thread holds",
        (Mark("0"),),
        inject="blocked_lock.py",
        ranks=(WAITS,),
    ),
    Scenario(
        "blocked-open-worker",
        "a loader thread waits in open(2) of a FIFO, the main thread waits for that thread",
        (Mark("worker"),),
        inject="blocked_open_worker.py",
        ranks=(WAITS,),
    ),
    Scenario(
        "slow-sleep",
        "the load sleeps before every tensor, and comes to an end after about 75 s",
        (Mark("0"),),
        inject="slow_sleep.py",
        versions=(NEWEST, OLD),
        passing=True,
        ranks=(WAKES,),
    ),
    Scenario(
        "slow-read",
        "the load reads its shards a few kilobytes at a time, as from a slow disk, and ends after about a minute",
        (Mark("0"),),
        inject="slow_read.py",
        passing=True,
        ranks=(WAITS,),
    ),
    Scenario(
        "missing-node",
        "the launch is for two nodes and the second one was never started",
        (Log(r"Init parallel begin"),),
        tp=2,
        flags=("--nnodes", "2", "--node-rank", "0", "--dist-init-addr", "127.0.0.1:{dist_port}"),
        ranks=(WAKES,),
    ),
)
SCENARIOS = {scenario.name: scenario for scenario in LIST}
