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


def collective_limit(option: str = "") -> TimeLimit:
    """Return the time after which PyTorch's NCCL watchdog ends the process of a rank whose collective stands still.

    600 s is PyTorch's default for NCCL (torch.distributed.constants); option: the engine's setting for it.
    """
    return TimeLimit(
        "collective",
        "PyTorch's NCCL watchdog ends the ranks that wait in a collective",
        frozenset({"rendezvous", "memory-pool", "graph-capture", "warmup", "serving"}),
        option=option,
        default_s=600.0,
        of_ranks=True,
        of_gpus=True,
    )


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
