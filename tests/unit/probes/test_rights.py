"""What is missing without rights, and the remedy that fits."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hangdoc.model.fd import OpenFiles
from hangdoc.model.reading import Known, Missing
from hangdoc.model.thread import CpuUse, Progress, Waits
from hangdoc.procfs.stat import parse_stat
from hangdoc_probes import _reading, cpu, fds, futex, locks, progress, stacks
from tests.unit.probes.targets import Target, as_somebody_else, become_nobody, running, take

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give rights up")

IDLE = 'say("ready"); sys.stdin.read()'
CAPSET = {"x86_64": 126, "aarch64": 91}
CAPABILITY_VERSION_3 = 0x20080522


def lose_ptrace() -> None:
    """Stay root, but without CAP_SYS_PTRACE, as in a container."""
    left = _reading.capabilities(_reading.Path("/proc")) & ~_reading.CAP_SYS_PTRACE
    low, high = left & 0xFFFFFFFF, left >> 32
    header = struct.pack("Ii", CAPABILITY_VERSION_3, 0)
    wanted = struct.pack("6I", low, low, 0, high, high, 0)
    if ctypes.CDLL(None).syscall(CAPSET[os.uname().machine], header, wanted) != 0:
        os._exit(1)


@contextmanager
def sleeping() -> Iterator[Target]:
    """A program that waits for a word: a thread that runs has a wait channel anybody may see, the empty one."""
    with running(IDLE) as target:
        while parse_stat(_reading.read(f"/proc/{target.pid}/stat")).state != "S":
            pass
        yield target


def told(reading: Any) -> list[str]:
    return [reading.reason, reading.remedy] if isinstance(reading, Missing) else ["known", ""]


def readings(target: Target) -> dict[str, list[str]]:
    """Take every probe and say how each reading of interest turned out."""
    _reading.permission_remedy.cache_clear()
    found = {probe.name: take(probe, target.process)[0].reading for probe in PROBES}
    outcome = {name: told(reading) for name, reading in found.items()}
    for reading in found.values():
        match reading:
            case Known(CpuUse() as use):
                outcome["clocks"] = told(use.clocks)
            case Known(Progress() as moved):
                outcome["io"] = told(moved.io)
            case Known(Waits() as waits):
                outcome["system call"] = told(waits.threads[0].system_call)
                outcome["wait channel"] = told(waits.threads[0].wait_channel)
            case Known(OpenFiles() as files):
                outcome["pipe"] = told(next(file.pipe for file in files.files if file.fd == 1))
    return outcome


PROBES = (cpu.PROBE, progress.PROBE, fds.PROBE, futex.PROBE, locks.PROBE, stacks.PROBE)


def test_root_reads_everything() -> None:
    """With all rights nothing of a Python process is missing."""
    with running(IDLE) as target:
        assert {reason for reason, _ in readings(target).values()} == {"known"}


def test_another_users_launch_still_shows_its_clocks() -> None:
    """Without rights CPU, state and memory are read; io, files, system calls and stacks are denied with a remedy."""
    with sleeping() as target:
        found = as_somebody_else(become_nobody, lambda: readings(target))
    assert {name for name, (reason, _) in found.items() if reason == "known"} == {"cpu", "clocks", "progress", "futex"}
    denied = {name: remedy for name, (reason, remedy) in found.items() if reason == "denied"}
    assert denied.keys() == {"io", "fds", "locks", "stacks", "system call", "wait channel"}
    assert all("run hangdoc as root" in remedy for remedy in denied.values())


@pytest.mark.skipif(os.uname().machine not in CAPSET, reason="the number of capset is not known here")
def test_root_in_a_container_is_told_which_capability_is_missing() -> None:
    """Root without CAP_SYS_PTRACE may open the files but not read them: denied, and the remedy names the option."""
    with sleeping() as target:
        found = as_somebody_else(lose_ptrace, lambda: readings(target))
    assert found["cpu"] == ["known", ""]
    for name in ("io", "locks", "stacks", "system call"):
        reason, remedy = found[name]
        assert reason == "denied"
        assert "--cap-add SYS_PTRACE" in remedy
