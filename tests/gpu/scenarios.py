"""What is tried on a GPU machine: each scenario, what goes wrong in it, and what hangdoc has to say of it."""

from __future__ import annotations

from dataclasses import dataclass

READY = r"The server is fired up and ready to roll!"
UVICORN = r"Uvicorn running on"
EAGER = ("--disable-cuda-graph",)


@dataclass(frozen=True)
class Scenario:
    """One launch.

    mode: what the hooks do to rank `rank`; serving: only once a request comes, after the server was ready;
    ready: no illness, looked at when the log has this pattern; load: while requests run; stop: the rank is stopped by a
    signal while it serves; wait_s: how long to let the illness last before it is looked at; cold: with empty caches of
    compiled kernels; locked: with the locks of these caches held by the driver; native: looked at a second
    time, with native stacks; flags: of the server.
    verdicts: what may be said; culprit: the rank that has to be named, None: nobody is asked for; "outside": who
    drives all this.
    """

    name: str
    verdicts: tuple[str, ...]
    ranks: int = 1
    mode: str = ""
    rank: int = 0
    serving: bool = False
    ready: str = ""
    load: bool = False
    stop: bool = False
    wait_s: float = 0.0
    cold: bool = False
    locked: bool = False
    native: bool = False
    flags: tuple[str, ...] = EAGER
    culprit: int | str | None = None


HANG_ON_GPU = ("busy-wait",)
LIST = (
    Scenario("healthy-idle", ("healthy",), ready=READY, flags=()),
    Scenario("healthy-load", ("healthy",), ready=READY, load=True, flags=()),
    Scenario("kernel-spin-start", HANG_ON_GPU, mode="kernel-spin", native=True, culprit=0),
    Scenario("kernel-spin-serving", HANG_ON_GPU, mode="kernel-spin", serving=True, native=True, culprit=0),
    Scenario("short-of-a-rank-start", HANG_ON_GPU, 2, "sleep", 1, native=True, culprit=1),
    Scenario("short-of-a-rank-serving", HANG_ON_GPU, 2, "sleep", 1, serving=True, culprit=1),
    Scenario("healthy-load-two", ("healthy",), 2, ready=READY, load=True, flags=()),
    Scenario("stopped", ("blocked", "busy-wait"), 2, rank=1, ready=READY, load=True, stop=True, culprit=1),
    Scenario("asleep-in-capture", ("blocked",), 2, "sleep-in-capture", 1, flags=(), culprit=1),
    Scenario("jit-lock", ("blocked",), locked=True, ready=r"Load weight end", wait_s=12.0, culprit="outside"),
    Scenario("nccl-init", ("blocked",), 2, "nccl-init", 1, culprit=1),
    Scenario("rendezvous", ("blocked",), 2, "rendezvous", 1, culprit=1),
    Scenario("cold-jit", ("slow-start",), cold=True, ready=r"Load weight end", wait_s=4.0, flags=()),
    Scenario("slow-load", ("slow-start",), mode="slow-load"),
    Scenario("python-loop", ("busy-wait",), mode="python-loop", culprit=0),
    Scenario("healthy-idle-two", ("healthy",), 2, ready=READY, flags=()),
    Scenario("raise", ("crashed",), 2, "raise", 1, culprit=1),
    Scenario(
        "after-watchdog",
        ("crashed", "busy-wait"),
        mode="kernel-spin",
        serving=True,
        wait_s=30.0,
        flags=(*EAGER, "--watchdog-timeout", "20"),
    ),
)
"""In the order of their worth, so that a lease which is cut short has the most important ones."""

SCENARIOS = {one.name: one for one in LIST}
MEASURES = ("overhead", "capture")
"""What is measured and not diagnosed, after the scenarios."""
