"""A trace of hangdoc itself: a whole look neither traces, nor signals, nor stops anybody of the launch."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.cli.commands import SPINS, program, python, run

TOUCHES = "ptrace,kill,tkill,tgkill,pidfd_send_signal,rt_sigqueueinfo,rt_tgsigqueueinfo,process_vm_writev"


def members(pid: int) -> set[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {pid, *map(int, children)}


@pytest.mark.needs("strace")
def test_a_look_touches_nobody(tmp_path: Path) -> None:
    """Of all system calls of hangdoc and of what it starts none traces, signals or writes to a member of the launch."""
    calls = tmp_path / "calls"
    strace = ("strace", "-f", "-qq", "-e", f"trace={TOUCHES}", "-e", "signal=none", "-o", str(calls))
    with program(*python(SPINS)) as patient:
        touched = members(patient.pid)
        ended = run("watch", str(patient.pid), "--once", "--max-window", "5", "--json", prefix=strace)
        states = {Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in touched}
    assert ended.code in (0, 1, 3), ended.err
    assert not states & {"T", "t"}
    lines = calls.read_text().splitlines()
    assert [line for line in lines if re.search(r"\b(?:ptrace|process_vm_writev)\(", line)] == []
    signalled = {int(number) for line in lines for number in re.findall(r"\((\d+)", line)}
    assert not signalled & touched
