"""What the kernel sees of an ending: signals go through descriptors only, and to members only."""

from __future__ import annotations

import re

import pytest

from tests.unit.ending.theatre import Theatre

SENDING = "kill,tkill,tgkill,rt_sigqueueinfo,rt_tgsigqueueinfo,ptrace,process_vm_writev,pidfd_send_signal,pidfd_open"
STARTING = "clone,clone3,fork,vfork"


@pytest.mark.needs("strace")
def test_every_signal_goes_through_a_descriptor_of_a_member(theatre: Theatre) -> None:
    """No kill by number, no trace; each descriptor that a signal goes through was opened for a member."""
    bystander = theatre.bystander()
    cast = theatre.launch("plain", "rank0", "rank1")
    calls = theatre.folder / "calls"
    strace = ("strace", "-f", "-qq", "-e", f"trace={SENDING},{STARTING}", "-e", "signal=none", "-o", str(calls))
    ended = theatre.kill_clean(str(cast["rank0"].pid), "--yes", "--no-snapshot", prefix=strace)
    assert ended.code == 0, ended.err
    text = calls.read_text()
    assert not re.search(r"\b(?:kill|tkill|tgkill|rt_\w*sigqueueinfo|ptrace|process_vm_writev)\(", text)
    opened: dict[str, int] = {}
    hit: set[int] = set()
    calls_made = re.finditer(r"pidfd_open\((\d+), 0\)\s*= (\d+)|pidfd_send_signal\((\d+), SIG(?:TERM|KILL)", text)
    for pid, number, signalled in (one.groups() for one in calls_made):
        if signalled:
            hit.add(opened[signalled])
        else:
            opened[number] = int(pid)  # strangers are held while they are looked at; the number is given anew then
    members = {key.pid for key in cast.values()}
    own = {int(pid) for pid in re.findall(r"(?:fork|clone3?)(?:\(.*|\s.*resumed.*)= (\d+)$", text, re.MULTILINE)}
    assert hit - own == members, text
    assert bystander.pid not in hit
