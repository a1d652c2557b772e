"""The futex probe on real processes."""

from __future__ import annotations

import os
import platform
import signal

import pytest

from hangdoc.model.reading import Known
from hangdoc.model.thread import SystemCall, ThreadWait, Waits
from hangdoc_probes import futex
from tests.unit.probes.targets import Target, known, running, take

FUTEX = {"x86_64": 202, "aarch64": 98}
WAIT_BITSET_MASK = 127
LOCKED = """
lock = threading.Lock(); lock.acquire()
threading.Thread(target=lock.acquire, daemon=True).start()
say("ready"); sys.stdin.read()
"""
RUNNING = """
say("ready")
while True: pass
"""


def waits(target: Target, *, thorough: bool = True) -> Waits:
    (sample,) = take(futex.PROBE, target.process, thorough=thorough)
    return known(sample, Waits)


def call_of(wait: ThreadWait) -> SystemCall | None:
    assert isinstance(wait.system_call, Known)
    return wait.system_call.value


@pytest.mark.skipif(platform.machine() not in FUTEX, reason="system call numbers of this machine are not known here")
def test_a_thread_that_waits_for_a_lock_is_in_futex() -> None:
    """Call number and operation say that it waits; the wait channel names the kernel's function."""
    with running(LOCKED) as target:
        call: SystemCall | None = None
        while call is None or call.number != FUTEX[platform.machine()]:  # the thread is on its way there
            waiter = next(wait for wait in waits(target).threads if wait.tid != target.pid)
            call = call_of(waiter)
        assert call.args[1] & WAIT_BITSET_MASK in {0, 9}
        assert isinstance(waiter.wait_channel, Known)


def test_the_main_thread_is_read_in_every_round() -> None:
    """An ordinary round has the main thread alone, a thorough one all."""
    with running(LOCKED) as target:
        assert [wait.tid for wait in waits(target, thorough=False).threads] == [target.pid]
        assert len(waits(target).threads) == 2


def test_a_running_thread_is_in_no_call() -> None:
    """A thread that runs has neither a system call nor a wait channel: both are known, not missing."""
    with running(RUNNING) as target:
        while (wait := waits(target).threads[0]).system_call != Known(None):
            pass  # it may be in the write of its word
        assert (wait.state, wait.wait_channel) == ("R", Known(""))


def test_a_stopped_process_is_in_state_t() -> None:
    """A stop shows as T."""
    with running(RUNNING) as target:
        os.kill(target.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, target.pid, os.WSTOPPED | os.WNOWAIT)
        assert waits(target).threads[0].state == "T"


def test_nobody_traces_it_and_the_machine_is_this_one() -> None:
    """tracer_pid is 0 and the machine is named, because call numbers depend on it."""
    with running(LOCKED) as target:
        found = waits(target)
        assert (found.tracer_pid, found.machine) == (0, platform.machine())
