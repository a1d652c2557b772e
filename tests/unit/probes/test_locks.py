"""The locks probe's manners: when it looks, what it says when it may not, and that the target never stops."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hangdoc.model.locks import Locks
from hangdoc.model.reading import Known
from hangdoc.procfs.stat import parse_stat
from hangdoc_probes import locks
from tests.unit.locks.targets import look
from tests.unit.probes.targets import context, known, missing, process_of, round_of, running, take

CROWD = """
lock = threading.Lock(); lock.acquire()
for _ in range(20): threading.Thread(target=lock.acquire, daemon=True).start()
say("ready"); sys.stdin.read()
"""
LOOK = """
import sys
from tests.unit.locks.targets import look
for _ in range(10): look(int(sys.argv[1]))
print(len(look(int(sys.argv[1])).futexes))
"""
TOUCHING = "ptrace,kill,tkill,tgkill,rt_sigqueueinfo,rt_tgsigqueueinfo,pidfd_send_signal"
TOUCHING += ",process_vm_writev,process_madvise"


def test_only_a_thorough_round_is_read() -> None:
    """Between thorough rounds it costs nothing and says nothing."""
    with running(CROWD) as target:
        assert take(locks.PROBE, target.process, thorough=False) == []
        (sample,) = take(locks.PROBE, target.process)
        assert isinstance(known(sample, Locks), Locks)


def test_waiters_of_one_address_are_one_classification() -> None:
    """Twenty threads that wait for one lock have the same reading."""
    with running(CROWD) as target:
        while len((seen := look(target.pid)).futexes) < 20:
            pass  # they are on their way there
        assert len({(one.address, one.kind, one.owner_tid) for one in seen.futexes}) == 1


def test_a_process_that_ended_is_gone() -> None:
    """A number without a process, or with another one, is no reading of the process that was asked about."""
    with running(CROWD) as target:
        (sample,) = take(locks.PROBE, process_of(target.pid, start_ticks=1))
        assert missing(sample).reason == "gone"
        process = target.process
        target.child.kill()
        target.child.wait()
        (sample,) = take(locks.PROBE, process)
    assert missing(sample).reason == "gone"


def test_a_zombie_has_no_locks() -> None:
    """What has ended and was not collected yet is gone, or waits for nothing."""
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    (sample,) = take(locks.PROBE, process_of(child.pid))
    child.wait()
    assert not isinstance(sample.reading, Known) or known(sample, Locks).futexes == ()


def test_the_target_is_never_seen_stopped() -> None:
    """While it is looked at again and again, no thread of it is in state T or t."""
    with running(CROWD) as target:
        session, states, done = locks.PROBE.open(context()), set(), threading.Event()

        def watch() -> None:
            while not done.is_set():
                states.update(parse_stat(path.read_bytes()).state for path in tasks)

        tasks = [path / "stat" for path in Path(f"/proc/{target.pid}/task").iterdir()]
        watcher = threading.Thread(target=watch)
        watcher.start()
        for _ in range(200):
            list(session.take(round_of(target.process)))
        done.set()
        watcher.join()
        session.close()
    assert states
    assert not states & {"T", "t"}


@pytest.mark.needs("strace")
def test_no_call_that_could_touch_the_target(tmp_path: Path) -> None:
    """Traced itself, the probe makes no ptrace call, sends no signal, writes no memory, and opens nothing to write."""
    calls = tmp_path / "calls"
    with running(CROWD) as target:
        command = ["strace", "-f", "-qq", "-o", str(calls), "-e", f"trace={TOUCHING},process_vm_readv,openat"]
        command += [sys.executable, "-c", LOOK, str(target.pid)]
        looked = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[3])
        assert int(looked.stdout) == 20
        pid = target.pid
    lines = calls.read_text().splitlines()
    assert any("process_vm_readv(" in line for line in lines)
    assert not [line for line in lines if any(f" {name}(" in line for name in TOUCHING.split(","))]
    opened = [line for line in lines if f"/proc/{pid}" in line]
    assert opened
    assert not [line for line in opened if "O_WRONLY" in line or "O_RDWR" in line]


def test_the_probe_says_what_it_needs() -> None:
    """Here, where it may look, it says what it reads."""
    assert isinstance(locks.PROBE.check(Path("/proc")), Known)
