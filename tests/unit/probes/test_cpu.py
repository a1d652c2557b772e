"""The cpu probe on real processes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from hangdoc.model.reading import Known
from hangdoc.model.thread import CpuUse, ThreadClock
from hangdoc_probes import _held, cpu
from tests.unit.probes.targets import context, known, missing, process_of, round_of, running, take

SLEEPERS = """
for _ in range(4): threading.Thread(target=threading.Event().wait, daemon=True).start()
say("ready"); sys.stdin.read()
"""
SPINNER = """
def spin():
    say("ready")
    while True: pass
threading.Thread(target=spin, daemon=True).start()
sys.stdin.read()
"""
CHANGING = """
ends = []
def start():
    ends.append(threading.Event()); born = threading.Event()
    thread = threading.Thread(target=lambda: (born.set(), ends[-1].wait()), daemon=True)
    thread.start(); born.wait(); return thread
first = start()
say("ready")
for word in sys.stdin:
    if word == "swap\\n":
        old = ends[0]; second = start(); old.set(); first.join()
    else:
        start()
    say("done")
"""
LEADERLESS = """
import ctypes
stay = threading.Event()
def outlive():
    while "State:\\tZ" not in open(f"/proc/self/task/{os.getpid()}/status").read(): pass
    say("ready"); stay.wait()
threading.Thread(target=outlive).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def clocks(use: CpuUse) -> tuple[ThreadClock, ...]:
    assert isinstance(use.clocks, Known)
    return use.clocks.value


def tids(pid: int) -> list[int]:
    return sorted(int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir())


def descriptors() -> set[str]:
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def test_every_thread_has_a_clock_and_in_a_thorough_round_a_state() -> None:
    """A thorough round lists clock and state of every thread of the process."""
    with running(SLEEPERS) as target:
        (sample,) = take(cpu.PROBE, target.process)
        use = known(sample, CpuUse)
        assert [clock.tid for clock in clocks(use)] == tids(target.pid)
        assert sorted(state.tid for state in use.states) == tids(target.pid)
        assert use.stat.threads == len(tids(target.pid))


def test_between_thorough_rounds_only_threads_that_ran_have_a_state() -> None:
    """A spinning thread's clock grows and its state is read although it is not the main one; sleepers' are not."""
    with running(SPINNER) as target:
        session = cpu.PROBE.open(context())
        states: set[int] = set()
        while len(states) < 2:  # the spinner needs a millisecond of CPU before it counts as moved
            (sample,) = session.take(round_of(target.process, thorough=False))
            states = {state.tid for state in known(sample, CpuUse).states}
        session.close()
        assert states == set(tids(target.pid))


def test_an_idle_process_costs_the_main_threads_state_only() -> None:
    """Threads that sleep keep the very record of the round before."""
    with running(SLEEPERS) as target:
        session = cpu.PROBE.open(context())
        before, after = (
            known(sample, CpuUse) for _ in range(2) for sample in session.take(round_of(target.process, thorough=False))
        )
        session.close()
        assert [state.tid for state in after.states] == [target.pid]
        assert all(one is other for one, other in zip(clocks(before), clocks(after), strict=True))


@pytest.mark.parametrize("word", ["add", "swap"])
@pytest.mark.parametrize("held", [100, 1, 0])
def test_threads_that_come_and_go_are_noticed(word: str, held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new thread, and one that replaced another while the count stayed, are seen in the next ordinary round.

    However many descriptors may be held: all, some or none.
    """
    with running(CHANGING) as target:
        session = cpu.CpuSession(Path("/proc"))
        session._allowance.left = held
        list(session.take(round_of(target.process)))
        assert target.tell(word) == "done"
        (sample,) = session.take(round_of(target.process, thorough=False))
        session.close()
        assert [clock.tid for clock in clocks(known(sample, CpuUse))] == tids(target.pid)


def test_closing_gives_every_descriptor_back() -> None:
    """After close, and after a process left the roster, no descriptor stays open."""
    before = descriptors()
    with running(SLEEPERS) as target, running(SLEEPERS) as other:
        session = cpu.PROBE.open(context())
        list(session.take(round_of(target.process, other.process)))
        held = len(descriptors())
        list(session.take(round_of(target.process)))
        assert len(descriptors()) < held
        session.close()
    assert descriptors() == before


def test_a_zombie_is_a_reading() -> None:
    """A process that ended and was not waited for has state Z and no threads."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    try:
        (sample,) = take(cpu.PROBE, process_of(child))
        assert known(sample, CpuUse).stat.state == "Z"
    finally:
        os.waitpid(child, 0)


def test_a_process_whose_main_thread_ended_still_has_clocks() -> None:
    """The main thread is a zombie, the others live on: their clocks and states are read."""
    with running(LEADERLESS) as target:
        (sample,) = take(cpu.PROBE, target.process)
        use = known(sample, CpuUse)
        assert use.stat.state == "Z"
        assert len(clocks(use)) == 2
        assert {state.tid: state.state for state in use.states}[target.pid] == "Z"


def test_a_stopped_process_shows_as_stopped() -> None:
    """State T is told, not taken for sleep."""
    with running(SLEEPERS) as target:
        os.kill(target.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, target.pid, os.WSTOPPED | os.WNOWAIT)
        (sample,) = take(cpu.PROBE, target.process)
        assert known(sample, CpuUse).stat.state == "T"


@pytest.mark.skipif(not Path("/proc/2/stat").exists(), reason="no kernel thread in sight (a container)")
def test_a_kernel_thread_is_a_reading() -> None:
    """A kernel thread has a clock like any other, and no memory."""
    (sample,) = take(cpu.PROBE, process_of(2))
    assert known(sample, CpuUse).stat.rss_bytes == 0


def test_a_process_that_ends_between_two_rounds_is_gone() -> None:
    """A held descriptor answers "no such process", which is Missing gone for this process and for no other."""
    with running(SLEEPERS) as target, running(SLEEPERS) as other:
        session = cpu.PROBE.open(context())
        list(session.take(round_of(target.process, other.process)))
        target.child.kill()
        target.child.wait()
        ended, alive = session.take(round_of(target.process, other.process, thorough=False))
        session.close()
        assert missing(ended).reason == "gone"
        known(alive, CpuUse)


def test_a_pid_that_was_given_to_another_is_gone() -> None:
    """The same pid with another start time is another process."""
    with running(SLEEPERS) as target:
        (sample,) = take(cpu.PROBE, process_of(target.pid, start_ticks=1))
        assert missing(sample).reason == "gone"


def test_the_descriptor_limit_is_raised_and_half_of_it_left() -> None:
    """Holding thousands of descriptors needs no setting by the user and never takes all there are."""
    allowance = _held.Allowance()
    limit = _held.resource.getrlimit(_held.resource.RLIMIT_NOFILE)[0]
    assert 0 < allowance.left <= limit / 2


def test_this_machine_keeps_clocks() -> None:
    """The check says what can be read here."""
    assert isinstance(cpu.PROBE.check(Path("/proc")), Known)
