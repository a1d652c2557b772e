"""Who outside the launch has the memory in which a thread waits, on real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hangdoc.model.locks import FutexWait, Locks
from hangdoc.model.reading import Known, Missing
from hangdoc_probes import locks
from hangdoc_probes._sharers import Outsiders
from tests.unit.locks.targets import compiled, look, running, until, wait_of
from tests.unit.probes.targets import context, process_of, round_of

PAIR = """
import ctypes, multiprocessing, os, sys
context = multiprocessing.get_context("fork")
barrier, pid = context.Barrier(3), os.getpid()
def rank():
    ctypes.CDLL(None).prctl(1, 9)
    barrier.wait()
children = [context.Process(target=rank, daemon=True) for _ in range(2)]
[child.start() for child in children]
print(*(child.pid for child in children), flush=True)
sys.stdin.read()
"""


def outsiders(wait: FutexWait) -> list[int]:
    assert isinstance(wait.outsiders, Known), wait
    return [end.process.pid for end in wait.outsiders.value]


def together(*pids: int) -> dict[int, Locks]:
    """Look at processes as the members of one launch."""
    taken = locks.PROBE.open(context()).take(round_of(*map(process_of, pids)))
    return {
        sample.process.pid: sample.reading.value
        for sample in taken
        if sample.process is not None and isinstance(sample.reading, Known) and isinstance(sample.reading.value, Locks)
    }


def test_a_process_that_is_no_member_has_the_memory_too() -> None:
    """Of three processes that share a barrier, those that are no members are named, and members are not."""
    ran = subprocess.Popen([sys.executable, "-c", PAIR], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert ran.stdout is not None
        first, second = map(int, ran.stdout.readline().split())
        until(first, lambda seen: any(one.shared_key for one in seen.futexes))
        until(second, lambda seen: any(one.shared_key for one in seen.futexes))
        assert outsiders(wait_of(look(first), first)) == sorted([ran.pid, second])
        seen = together(first, second, ran.pid)
        assert [outsiders(wait_of(seen[pid], pid)) for pid in (first, second)] == [[], []]
        assert not wait_of(seen[first], first).by_name
    finally:
        ran.kill()
        ran.communicate()


@pytest.mark.needs("cc")
def test_a_file_with_a_name(tmp_path: Path) -> None:
    """Memory that is a file with a name may be opened by anybody, whoever has it now."""
    program = compiled("kinds.c", tmp_path, "cc")
    with running(program, "hold", str(tmp_path / "lock")) as holder:
        holder.hear("hold")
        with running(program, "want", str(tmp_path / "lock")) as waiter:
            waiter.hear("want")
            seen = until(waiter.pid, lambda one: bool(one.futexes))
            wait = wait_of(seen, waiter.tids["want"])
            assert (outsiders(wait), wait.by_name) == ([holder.pid], True)


NAMED = """
import ctypes, os, sys
library = ctypes.CDLL(None, use_errno=True)
library.sem_open.restype = ctypes.c_void_p
name = b"/hangdoc-test-%d" % os.getpid()
semaphore = ctypes.c_void_p(library.sem_open(name, os.O_CREAT, 0o600, 0))
if sys.argv[1] == "unlinked":
    library.sem_unlink(name)
print(os.getpid(), flush=True)
library.sem_wait(semaphore)
library.sem_unlink(name)
library.sem_post(semaphore)
"""


@pytest.mark.parametrize("act", ["named", "unlinked"])
def test_a_semaphore_with_a_name(act: str) -> None:
    """Whoever knows the name may post it, though its mapping shows none; nobody after the name was taken away."""
    ran = subprocess.Popen([sys.executable, "-c", NAMED, act], stdout=subprocess.PIPE, text=True)
    try:
        assert ran.stdout is not None
        ran.stdout.readline()
        wait = wait_of(until(ran.pid, lambda seen: any(one.shared_key for one in seen.futexes)), ran.pid)
        assert wait.by_name == (act == "named")
    finally:
        ran.kill()
        ran.communicate()
        Path(f"/dev/shm/sem.hangdoc-test-{ran.pid}").unlink(missing_ok=True)


def test_memory_that_may_not_be_looked_at(tmp_path: Path) -> None:
    """What one process of the same user does not show may be the memory that is asked for: it is missing, not none."""
    (tmp_path / "7").mkdir()
    (tmp_path / "7/status").write_text(f"Uid:\t{os.geteuid()}\t0\t0\t0\n")
    (tmp_path / "7/maps").symlink_to(tmp_path / "7/maps")  # ELOOP, as any refusal that is not "gone"
    assert isinstance(Outsiders(tmp_path, ()).of("00:01:42:0"), Missing)
    (tmp_path / "7/maps").unlink()
    (tmp_path / "7/maps").write_bytes(b"7f00-7f10 rw-s 00000020 00:01 7 /dev/zero (deleted)\n")
    assert Outsiders(tmp_path, ()).of("00:01:42:0") == Known(())
