"""Lines of Gloo, NCCL and torch's store are read under every engine, and of each only the numbers are kept."""

from __future__ import annotations

import pytest

from hangdoc import discovery
from hangdoc.logs.lines import read_line
from hangdoc.trace import wording
from hangdoc.trace.tokens import Tokens

BARRIER = "rank 0 waits in the store's barrier: 7 came, 8 expected"


@pytest.mark.parametrize("engine", ["sglang", "torchrun"])
@pytest.mark.parametrize(
    ("line", "name", "text"),
    [
        (
            (
                "INFO:root:Waiting in store based barrier to initialize process group for rank: 0, "
                "key: store_based_barrier_key:1 (world_size=8, worker_count=7, timeout=0:30:00)"
            ),
            "store-barrier",
            BARRIER,
        ),
        (
            (
                "Waiting in store based barrier to initialize process group for 10.01 secondsrank: 0, "
                "key: store_based_barrier_key:1 (world_size=8, num_workers_joined=7, timeout=0:30:00 error=Timed out)"
            ),
            "store-barrier",
            BARRIER,
        ),
        (
            "node:182125:182663 [0] NCCL INFO comm 0x5ed0 rank 3 nranks 4 cudaDev 3 busId 1000 - Init COMPLETE",
            "nccl-init-complete",
            "NCCL rank 3 of 4 init complete",
        ),
        (
            "[Gloo] Rank 2 is connected to 7 peer ranks. Expected number of connected peer ranks is : 7",
            "gloo-connected",
            "Gloo rank 2 is connected to 7 of 7 peers",
        ),
    ],
)
def test_lines_of_every_engine(engine: str, line: str, name: str, text: str) -> None:
    """Old and new wordings are one event, whose text has words of the vocabulary and the numbers of the line."""
    event = read_line(line, discovery.engine(engine))
    assert event is not None
    assert (event.name, event.text) == (name, text)
    assert wording.sentence(Tokens(), event.text) == event.text


@pytest.mark.parametrize(
    ("line", "kind", "text"),
    [
        ("[2025-10-06 20:05:27 DP3 TP3] Registering 0 cuda graph addresses", "milestone", "graph addresses: 0"),
        (
            "[2026-08-27 10:10:10 TP0] CustomAllreduce is disabled because this process group spans across nodes.",
            "milestone",
            "the process group is on several nodes",
        ),
        (
            (
                "[2025-04-16 10:10:10 TP0] TP rank 0 could finish the model loading, but there are other ranks that "
                "didn't finish loading. It is likely due to unexpected failures (e.g., OOM) or a slow node."
            ),
            "crash",
            "rank 0 has loaded, others have not finished",
        ),
        (
            (
                "Exception: Capture cuda graph failed: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] "
                "Connection closed by peer [::1]:50000"
            ),
            "crash",
            "graph capture failed: a peer closed the connection",
        ),
    ],
)
def test_lines_of_sglang(line: str, kind: str, text: str) -> None:
    """What SGLang prints beside a collective keeps its numbers and loses addresses."""
    event = read_line(line, discovery.engine("sglang"))
    assert event is not None
    assert (event.kind, event.text) == (kind, text)
    assert wording.sentence(Tokens(), event.text) == event.text
