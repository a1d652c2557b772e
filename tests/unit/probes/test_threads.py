"""What threads wait in is read once a round, whichever probes ask."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from hangdoc.model.locks import Locks
from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.reading import Missing
from hangdoc.model.thread import Waits
from hangdoc_probes import _threads, futex, links, locks
from hangdoc_probes._threads import threads
from tests.unit.probes.targets import context, known, round_of, running

FUTEX = {"x86_64": b"202 ", "aarch64": b"98 "}[os.uname().machine]
WAITER = """
import threading
lock = threading.Lock()
lock.acquire()
say("ready")
lock.acquire()
"""


def test_three_probes_read_the_system_calls_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The probes that see waits, in one round, read the syscall file of a thread a single time, and agree."""
    opened: list[str] = []
    original = _threads.thread_file

    def counting(task: int, tid: int, name: str, most_bytes: int) -> bytes:
        opened.append(name)
        return original(task, tid, name, most_bytes)

    monkeypatch.setattr(_threads, "thread_file", counting)
    with running(WAITER) as target:
        while not Path(f"/proc/{target.pid}/syscall").read_bytes().startswith(FUTEX):
            pass
        now = round_of(target.process)
        found = [
            sample for probe in (futex.PROBE, links.PROBE, locks.PROBE) for sample in probe.open(context()).take(now)
        ]
    assert opened.count("syscall") == 1
    waits, lock = known(found[0], Waits), known(found[2], Locks)
    assert [one.tid for one in waits.threads] == [one.tid for one in lock.futexes] == [target.pid]


def test_the_main_thread_is_first(tmp_path: Path) -> None:
    """Of more threads than are described, the main thread is among those that are, whatever its number."""
    for tid in (3, 5, 4):
        folder = tmp_path / "5" / "task" / str(tid)
        folder.mkdir(parents=True)
        (folder / "syscall").write_bytes(b"running\n")
        (folder / "stat").write_bytes(b"")
    seen = threads(round_of(), tmp_path, 5)
    assert seen.tids == (5, 3, 4)
    assert list(seen.calls) == [5, 3, 4]
    assert seen.all_read


def test_a_process_that_is_gone(tmp_path: Path) -> None:
    """A process without a task directory is gone, not empty."""
    with pytest.raises(FileNotFoundError):
        threads(round_of(), tmp_path, 5)


def test_a_kernel_without_syscall_files(tmp_path: Path) -> None:
    """Where a living thread has no syscall file the reading is Missing, unsupported: the thread is not called idle."""
    folder = tmp_path / "5" / "task" / "5"
    folder.mkdir(parents=True)
    (folder / "stat").write_bytes(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/stat").read_bytes())
    (folder / "wchan").write_bytes(b"do_wait")
    (tmp_path / "5" / "status").write_bytes(Path("/proc/self/status").read_bytes())
    one = Process(key=ProcessKey(5, 1), ppid=1, role="other")
    (sample,) = futex.PROBE.open(replace(context(), proc=tmp_path)).take(round_of(one))
    (wait,) = known(sample, Waits).threads
    assert isinstance(wait.system_call, Missing)
    assert wait.system_call.reason == "unsupported"
