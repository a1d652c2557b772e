"""What /proc says of a process's main thread, in so far as it tells the tests' illnesses apart."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Look:
    """One sample; `ticks` is CPU time, `switches` counts voluntary context switches."""

    state: str
    ticks: int
    switches: int
    waits_in: str


def main_thread(pid: int) -> Look:
    task = Path(f"/proc/{pid}/task/{pid}")
    fields = (task / "stat").read_text().rpartition(") ")[2].split()
    switches = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", (task / "status").read_text(), re.MULTILINE)
    assert switches
    return Look(fields[0], int(fields[11]) + int(fields[12]), int(switches[1]), (task / "wchan").read_text())
