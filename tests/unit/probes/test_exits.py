"""How members ended: zombies that nobody has waited for, members that are gone, and those that live on."""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path

import pytest

from hangdoc.model.ending import Ended
from hangdoc.model.reading import Known, Missing
from hangdoc.model.snapshot import Sample
from hangdoc.procfs.pidfd import exit_request, exit_status
from hangdoc.trace import wording
from hangdoc.trace.tokens import Tokens
from hangdoc_probes import exits
from tests.unit.probes.targets import as_somebody_else, become_nobody, context, process_of, round_of, running

WAITS = """
import signal
say("ready"); signal.pause()
"""
LEAVES = """
say("ready"); sys.stdin.readline(); os._exit(7)
"""


def the_ending(samples: list[Sample]) -> Ended:
    (sample,) = samples
    assert isinstance(sample.reading, Known), sample
    assert isinstance(sample.reading.value, Ended)
    return sample.reading.value


def wait_until_zombie(pid: int) -> None:
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


@pytest.mark.parametrize("is_newest", [True, False], ids=["pidfd", "stat"])
@pytest.mark.parametrize(("how", "code", "number"), [("go", 7, None), ("kill", None, 9), ("term", None, 15)])
def test_a_zombie(
    how: str, code: int | None, number: int | None, is_newest: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit status of a member that nobody has waited for is read, told once, and is no reading of the living."""
    if not is_newest:
        monkeypatch.setattr(exits, "GET_INFO", 0x5401)  # an older kernel knows no such request
    with running(LEAVES) as target:
        session = exits.open_session(context())
        assert list(session.take(round_of(target.process))) == []
        if how == "go":
            assert target.child.stdin is not None
            target.child.stdin.write(b"go\n")
            target.child.stdin.flush()
        else:
            target.child.send_signal(signal.SIGKILL if how == "kill" else signal.SIGTERM)
        wait_until_zombie(target.pid)
        ended = the_ending(list(session.take(round_of(target.process))))
        assert (ended.code, ended.signal) == (code, number)
        assert list(session.take(round_of(target.process))) == []
        session.close()


def test_a_member_that_was_waited_for() -> None:
    """A newer kernel tells the status of one that is gone; of an older one the reading is missing, never 0."""
    with running(WAITS) as target:
        session = exits.open_session(context())
        list(session.take(round_of(target.process)))
        target.child.kill()
        target.child.wait()
        (sample,) = session.take(round_of())
    newest = "6.15 on" not in str(exits.check(Path("/proc")))
    if newest:
        assert the_ending([sample]).signal == signal.SIGKILL
    else:
        assert isinstance(sample.reading, Missing)


def test_an_older_kernel_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel has no such request and the parent was quicker, the status is missing."""
    monkeypatch.setattr(exits, "GET_INFO", 0x5401)
    with running(WAITS) as target:
        session = exits.open_session(context())
        list(session.take(round_of(target.process)))
        target.child.kill()
        target.child.wait()
        (sample,) = session.take(round_of())
    assert isinstance(sample.reading, Missing)
    assert sample.reading.reason == "unsupported"


def test_a_number_that_was_given_to_another() -> None:
    """A process that only has the number of a former member is not waited for."""
    with running(WAITS) as target:
        session = exits.open_session(context())
        former = process_of(target.pid, start_ticks=1)
        assert list(session.take(round_of(former))) == []
        target.child.kill()
        wait_until_zombie(target.pid)
        found = list(session.take(round_of(former)))
    assert not any(isinstance(sample.reading, Known) for sample in found)


def test_somebody_elses_zombie() -> None:
    """Without the right to trace it the kernel shows 0 for every status: the reading is missing instead."""
    if os.geteuid():
        pytest.skip("cannot be had here: only root can become somebody else")
    with running(LEAVES) as target:

        def look() -> list[str]:
            session = exits.open_session(context())
            list(session.take(round_of(target.process)))
            target.tell()
            wait_until_over(target.pid)
            (sample,) = session.take(round_of(target.process))
            return [sample.reading.reason] if isinstance(sample.reading, Missing) else ["known"]

        assert as_somebody_else(become_nobody, look) == ["denied"]


def wait_until_over(pid: int) -> None:
    """Wait for the end of a process that is no child."""
    poll = select.poll()
    descriptor = os.pidfd_open(pid)
    poll.register(descriptor, select.POLLIN)
    poll.poll(60_000)
    os.close(descriptor)


def test_what_it_says_stays_in_a_recording() -> None:
    """The sentence for an older kernel is made of known words."""
    assert wording.sentence(Tokens(), exits.OLD_KERNEL.detail) == exits.OLD_KERNEL.detail


@pytest.mark.parametrize("answer", [b"", b"\xff" * 8, exit_request()[:63]])
def test_answers_that_are_cut(answer: bytes) -> None:
    """An answer that is too short tells nothing."""
    assert exit_status(answer) is None
