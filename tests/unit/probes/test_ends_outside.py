"""What is seen of whoever is at the other end of a wait and no member: that it is stopped, or awaits a member's end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from hangdoc.model.link import LinkEnd
from hangdoc.procfs.stat import parse_stat
from hangdoc_probes._holders import Holders

PARENT = """
import ctypes, os, signal, sys
child = os.fork()
if child == 0:
    ctypes.CDLL(None).prctl(1, 9)
    signal.pause()
print(child, flush=True)
os.waitpid(child, 0) if sys.argv[1] == "child" else os.wait()
"""


def end_of(pid: int) -> LinkEnd:
    end = Holders(Path("/proc"), ()).end(pid)
    assert end is not None
    return end


def awaited(what: str) -> tuple[int, int | None]:
    """Run a parent that waits for its child, or for any; return the child, and whose end it is seen to await."""
    parent = subprocess.Popen([sys.executable, "-S", "-c", PARENT, what], stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        while parse_stat(Path(f"/proc/{parent.pid}/stat").read_bytes()).state != "S":
            pass
        return child, end_of(parent.pid).awaited_pid
    finally:
        parent.kill()
        parent.communicate()


def test_one_that_waits_for_the_end_of_a_child() -> None:
    """It is told whose end it awaits; of one that waits for any child that is not known."""
    child, seen = awaited("child")
    assert seen == child
    assert awaited("any")[1] is None


def test_one_that_a_signal_has_stopped() -> None:
    """It is told; of one that sleeps nothing is."""
    sleeper = subprocess.Popen(["/bin/sleep", "60"])
    try:
        assert not end_of(sleeper.pid).stopped
        os.kill(sleeper.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, sleeper.pid, os.WSTOPPED | os.WNOWAIT)
        assert end_of(sleeper.pid).stopped
    finally:
        sleeper.kill()
        sleeper.wait()
