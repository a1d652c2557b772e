"""Lines that mean the same under every engine: torch's, NCCL's, Python's, the kernel's, and those of shared libraries.

Read from public reports and from the sources of torch 2.x, NCCL 2.x and Linux 6.x.
"""

from __future__ import annotations

import re

from hangdoc.engines._failures import EXCEPTIONS, FAILURES
from hangdoc.engines._ras import LINES as RAS_LINES
from hangdoc.model.engine import LogLine, TimeLimit
from hangdoc.model.log import Phase


def complaint(name: str, pattern: str, text: str, phase: Phase = "unknown") -> LogLine:
    """Return a line by which somebody complains that something takes long; phase: the only one that it is heard in."""
    return LogLine(name, "watchdog", re.compile(pattern), text, phase)


_COLLECTIVES: frozenset[Phase] = frozenset({"rendezvous", "memory-pool", "graph-capture", "warmup", "serving"})
"""Phases in which the ranks of an engine wait for each other in collectives."""

_YES = frozenset({"y", "yes", "1", "t", "true"})
_NO = frozenset({"n", "no", "0", "f", "false"})
"""What torch takes for yes and no, in any case (c10d's getCvarBool)."""

_NOT_ENDED = frozenset({"0", "2"})
"""Kinds of error handling that leave the process alone: none, and only the communicators (ErrorHandlingMode)."""


def nccl_limits(option: str = "") -> tuple[TimeLimit, ...]:
    """Return the timers of PyTorch's NCCL process groups; option: the engine's setting for their timeout.

    collective: ends the process of a rank whose collective stands still; 600 s by default for NCCL
    (torch.distributed.constants). Off where errors are not to end a process, unless who waits is to raise (blocking
    wait). nccl-monitor: ends a process whose NCCL watchdog is itself stuck in CUDA or NCCL; 480 s by default
    (ProcessGroupNCCL.cpp: 60 * 8).
    """
    collective = TimeLimit(
        "collective",
        "PyTorch's NCCL watchdog ends the ranks that wait in a collective",
        _COLLECTIVES,
        option=option,
        default_s=600.0,
        of_ranks=True,
        of_gpus=True,
        off=(("TORCH_NCCL_ASYNC_ERROR_HANDLING", _NOT_ENDED), ("NCCL_ASYNC_ERROR_HANDLING", _NOT_ENDED)),
        on=(("TORCH_NCCL_BLOCKING_WAIT", _YES), ("NCCL_BLOCKING_WAIT", _YES)),
    )
    monitor = TimeLimit(
        "nccl-monitor",
        "PyTorch's NCCL monitor ends the ranks whose NCCL watchdog is stuck itself",
        _COLLECTIVES,
        variable="TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
        default_s=480.0,
        of_ranks=True,
        of_gpus=True,
        off=(("TORCH_NCCL_ENABLE_MONITORING", _NO),),
    )
    return collective, monitor


COMPLAINTS = (
    complaint(
        "nccl-watchdog",
        r"Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(?P<sequence>\d+), "
        r"OpType=(?P<operation>[A-Z_]+)",
        "NCCL watchdog: collective {sequence} timed out",
    ),
    complaint(
        "nccl-watchdog",
        r"Watchdog caught collective operation timeout",
        "NCCL watchdog: a collective timed out",
    ),
    complaint(
        "last-enqueued",
        r"[Ll]ast enqueued NCCL work: (?P<enqueued>-?\d+), last completed NCCL work: (?P<completed>-?\d+)",
        "last enqueued collective {enqueued}, last completed {completed}",
    ),
    # ProcessGroupNCCL.cpp 2.3 to 2.8: its watchdog does not beat for TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC.
    complaint(
        "nccl-heartbeat",
        r"(?:Rank (?P<rank>\d+)\] )?Heartbeat monitor timed out! Process will be terminated",
        "NCCL's watchdog itself stands still",
    ),
    complaint(
        "nccl-heartbeat",
        r"(?:Rank (?P<rank>\d+)\] )?ProcessGroupNCCL's watchdog got stuck for (?P<seconds>\d+) seconds",
        "NCCL's watchdog itself stands still for {seconds} s",
    ),
    complaint(
        "nccl-heartbeat",
        r"(?:Rank (?P<rank>\d+)\] )?Terminating the process after attempting to dump debug info, "
        r"due to ProcessGroupNCCL watchdog hang",
        "NCCL's watchdog itself stands still, and ended its process",
    ),
    *RAS_LINES,
    complaint(
        "store-barrier",
        r"store based barrier to initialize process group for (?:[\d.]+ seconds ?)?rank: (?P<printer>\d+).*"
        r"world_size=(?P<world>\d+), (?:worker_count|num_workers_joined)=(?P<came>\d+)",
        "rank {printer} waits in the store's barrier: {came} came, {world} expected",
        "rendezvous",
    ),
    complaint("gloo-timeout", r"Timed out waiting \d+ms for (?:recv|send) operation", "Gloo waited in vain for a peer"),
    complaint(
        "store-timeout",
        r"Error: (?:Timed out after \d+ seconds waiting for clients|wait timeout after \d)",
        "torch waited in vain for a peer",
        "rendezvous",
    ),
    complaint("baton", r"waiting for baton release at", "waits for another process's build", "jit-compile"),
    complaint("download-lock", r"[Ss]till waiting to acquire lock on", "waits for a download's lock", "weight-load"),
)

PROGRESS = (
    LogLine(
        "shard-bar",
        "progress",
        re.compile(r"(?:Loading \w+ checkpoint|Multi-thread loading) shards: +(?P<percent>\d+)%"),
        "loading shards {percent} %",
        "weight-load",
    ),
    LogLine(
        "autotune",
        "progress",
        re.compile(r"^AUTOTUNE \w+\((?P<what>)"),
        "AUTOTUNE",
        "jit-compile",
    ),
    LogLine(
        "flashinfer-build",
        "progress",
        re.compile(r"flashinfer\.jit:? ?(?:INFO)?.*Loading JIT ops|^Loading JIT ops"),
        "flashinfer loads JIT ops",
        "jit-compile",
    ),
    LogLine(
        "cold-cache",
        "milestone",
        re.compile(r"cold cache JIT-compile may take"),
        "a kernel is compiled with a cold cache",
        "jit-compile",
    ),
    LogLine(
        "flashinfer-backend",
        "milestone",
        re.compile(r"Prebuilt kernels not found, using JIT backend"),
        "flashinfer uses its JIT backend",
        "jit-compile",
    ),
)

# Written by C and C++ into buffers of their own, so that they may come late: they open no phase.
LIBRARIES = (
    LogLine(
        "gloo-connected",
        "milestone",
        re.compile(
            r"\[Gloo\] Rank (?P<rank>\d+) is connected to (?P<peers>\d+) peer ranks\. "
            r"Expected number of connected peer ranks is : (?P<expected>\d+)"
        ),
        "Gloo rank {rank} is connected to {peers} of {expected} peers",
    ),
    LogLine(
        "nccl-init-complete",
        "milestone",
        re.compile(r"NCCL INFO .*\brank (?P<rank>\d+) nranks (?P<ranks>\d+) .*Init COMPLETE"),
        "NCCL rank {rank} of {ranks} init complete",
    ),
    LogLine(
        "nccl-begins",
        "milestone",
        re.compile(r"\bNCCL version (?P<version>\d[\d.]*)|RCCL version : (?P<rccl>\d[\d.]*)"),
        "NCCL version",
    ),
    LogLine(
        "nccl-channels",
        "milestone",
        re.compile(r"NCCL INFO (?:Channel \d+|Using network|Connected all|comm 0x\w+ rank \d+ nranks)"),
        "NCCL builds its channels",
    ),
)

LINES = (*FAILURES, *COMPLAINTS, *PROGRESS, *LIBRARIES, *EXCEPTIONS)
"""Tried after an engine's own lines."""
