"""What is said of a log that does not tell: the last thing that it did say, and the next command."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangdoc.diagnosis import diagnose
from hangdoc.logs.read import Wishes, read
from hangdoc.model.diagnosis import Diagnosis

BARRIER = (
    "INFO:root:Waiting in store based barrier to initialize process group for rank: {rank}, "
    "key: store_based_barrier_key:1 (world_size=4, worker_count=3, timeout=0:30:00)\n"
)
STACK = (
    'Thread 77 (idle): "MainThread"\n    acquire (filelock/_api.py:344)\n    load_ops (flashinfer/jit/core.py:134)\n'
)


def of(text: str, directory: Path) -> Diagnosis:
    log = directory / "server.log"
    log.write_text(text)
    return diagnose(read([log], Wishes()), "log")


@pytest.mark.parametrize(
    ("text", "said", "command"),
    [
        ("".join(BARRIER.format(rank=rank) for rank in (0, 1, 3)), "rank 2 has not said so", "that has not come"),
        ("Still waiting to acquire lock on /x/.lock (elapsed: 10.0 seconds)\n", "download's lock", "fuser -v"),
        ("sglang waiting for baton release at /x/lock\n", "another process's build", "pgrep"),
        ("vllm No available shared memory broadcast block found in 60 seconds.\n", "no broadcast block", "VLLM::W"),
        (STACK, "stands in acquire (filelock/_api.py:344)", "hangdoc watch 77 --once"),
        ("node:1:1 [0] NCCL INFO comm 0x5e rank 3 nranks 4 cudaDev 3 busId 1 - Init COMPLETE\n", "init complete",
         "hangdoc watch"),
        ("hello\n", "No line of it says", "hangdoc watch"),
    ],
)  # fmt: skip
def test_what_it_last_said(text: str, said: str, command: str, tmp_path: Path) -> None:
    """The headline has the last complaint, the stack, or the last known line; the first step is of that."""
    found = of(text, tmp_path)
    assert found.verdict == "undetermined"
    assert said in found.headline
    assert command in found.next_steps[0].action
