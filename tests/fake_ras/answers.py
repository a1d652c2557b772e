"""Answers of NCCL's RAS as several versions gave them, with pids and hosts made anew; and who gives them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SERVER = Path(__file__).with_name("server.py")

MISMATCH = """NCCL version 2.27.3 compiled with CUDA 12.9
CUDA runtime version 12090, driver version 12090

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      1          2            1          2        2

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         1         2         2         2   RUNNING  MISMATCH

Warnings
========

#0-0 (7aa0cabdccb9c1be) MISMATCH
  Communicator ranks have different AllGather operation counts
  Rank 0 has launched up to operation 5 -- GPU 0 managed by process {pid} on node 192.0.2.2
  Rank 1 has launched up to operation 4 -- GPU 1 managed by process 99944 on node 192.0.2.2

  Communicator ranks have different AllReduce operation counts
  Rank 0 has launched up to operation 17 -- GPU 0 managed by process {pid} on node 192.0.2.2
  Rank 1 has launched up to operation 7 -- GPU 1 managed by process 99944 on node 192.0.2.2
"""

EQUAL = MISMATCH.partition("Warnings")[0]


def as_json(*ranks: Sequence[Any], missing: Sequence[int] = (), host: str = "192.0.2.2", comma: str = ",") -> str:
    """Write an answer with one communicator. ranks: (rank, pid, count); comma: "" as 2.28.9 forgets one."""
    listed = ",\n".join(
        f'{{"rank": {rank}, "host": "{host}", "pid": {pid}, "cuda_dev": {rank}, "nvml_dev": {rank},\n'
        f'"status": {{"init_state": 0, "async_error": 0, "abort_flag": false}}{comma}\n'
        f'"collective_counts": {{"Broadcast": 0, "AllGather": 3, "AllReduce": {count}}}}}'
        for rank, pid, count in ranks
    )
    gone = ", ".join(f'{{"rank": {rank}, "host": "{host}", "pid": 0, "unresponsive": true}}' for rank in missing)
    return (
        '{\n"nccl_version": "2.30.7",\n"timestamp": "2026-01-01 14:16:50",\n"communicators_count": 1,\n'
        f'"communicators": [{{"hash": "0x7aa0cabdccb9c1be", "size": {len(ranks) + len(missing)},\n'
        f'"ranks": [{listed}],\n"missing_ranks": [{gone}]}}],\n'
        '"ras": {"collection_time_sec": 0.000, "timeouts_count": 0}\n}\n'
    )


@contextmanager
def reserved() -> Iterator[int]:
    """Hold a port that a service may listen on beside us, and that nobody else gets."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@contextmanager
def serving(
    port: int, way: str, *file: Path, extra: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a service until the test is done with it."""
    environment = {**os.environ, "NCCL_RAS_ADDR": f"127.0.0.1:{port}", **(extra or {})}
    argv = [sys.executable, str(SERVER), way, *map(str, file)]
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        yield child
    finally:
        child.kill()
        child.communicate()
