"""Lines that ranks print on their way into a collective, whatever the engine: of torch, NCCL and Gloo."""

from __future__ import annotations

import re

from hangdoc.model.engine import LogLine

LOG_LINES = (
    # torch 2.7 and newer, straight from C++, so without the engine's prefix.
    LogLine(
        "gloo-connected",
        "milestone",
        re.compile(
            r"\[Gloo\] Rank (?P<rank>\d+) is connected to (?P<peers>\d+) peer ranks\. "
            r"Expected number of connected peer ranks is : (?P<expected>\d+)"
        ),
        "Gloo rank {rank} is connected to {peers} of {expected} peers",
    ),
    # NCCL with NCCL_DEBUG=INFO, all versions.
    LogLine(
        "nccl-init-complete",
        "milestone",
        re.compile(r"NCCL INFO .*\brank (?P<rank>\d+) nranks (?P<ranks>\d+) .*Init COMPLETE"),
        "NCCL rank {rank} of {ranks} init complete",
    ),
    # torch since 1.7, again and again while it waits; newer ones put no blank before "rank". Of kind progress, because
    # a line that is said again says nothing new.
    LogLine(
        "store-barrier",
        "progress",
        re.compile(
            r"Waiting in store based barrier to initialize process group for (?:[\d.]+ seconds)?\s*"
            r"rank: (?P<rank>\d+), key: \S+ \(world_size=(?P<size>\d+), "
            r"(?:worker_count|num_workers_joined)=(?P<count>\d+)"
        ),
        "store barrier of rank {rank}: {count} of {size} ranks came",
    ),
)
"""The texts are read back by the hypotheses that need their numbers."""
