"""Translate thread numbers of a target in its own process namespace (a container) into hangdoc's."""

from __future__ import annotations

from pathlib import Path

from hangdoc.procfs.status import parse_status
from hangdoc_probes._reading import numbered, read


def host_thread_ids(proc: Path, pid: int) -> dict[int, int]:
    """Map the target's own thread numbers to the ones seen from here; empty when they are the same."""
    if len(parse_status(read(f"{proc}/{pid}/status")).namespace_pids) == 1:
        return {}
    inner_to_outer = {}
    for tid in numbered(f"{proc}/{pid}/task"):
        try:
            inner = parse_status(read(f"{proc}/{pid}/task/{tid}/status")).namespace_pids[-1]
        except (FileNotFoundError, ProcessLookupError):
            continue  # ended in the meantime
        inner_to_outer[inner] = tid
    return inner_to_outer
