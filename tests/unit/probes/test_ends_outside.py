"""What may end a wait from outside a launch, or by itself: whoever is at its other end, and a timeout of the socket."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

from hangdoc.model.link import LinkEnd
from hangdoc.model.reading import Known, Missing
from hangdoc.procfs.stat import parse_stat
from hangdoc_probes._descriptors import timeout_of
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
        end = end_of(parent.pid)
        assert end.rests is False
        return child, end.awaited_pid
    finally:
        parent.kill()
        parent.communicate()


def test_one_that_waits_for_the_end_of_a_child() -> None:
    """It is told whose end it awaits; of one that waits for any child that is not known."""
    child, seen = awaited("child")
    assert seen == child
    assert awaited("any")[1] is None


def test_one_that_a_signal_has_stopped() -> None:
    """It is told; one that sleeps may go on by itself."""
    sleeper = subprocess.Popen(["/bin/sleep", "60"])
    try:
        assert (end_of(sleeper.pid).stopped, end_of(sleeper.pid).rests) == (False, True)
        os.kill(sleeper.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, sleeper.pid, os.WSTOPPED | os.WNOWAIT)
        assert end_of(sleeper.pid).stopped
    finally:
        sleeper.kill()
        sleeper.wait()


def test_the_timeout_of_a_socket() -> None:
    """Each direction has its own; none is 0, and what is no socket has none that could be read."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert timeout_of(os.getpid(), ours.fileno(), "data") == Known(0.0)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", 25, 500_000))
        seen_s = timeout_of(os.getpid(), ours.fileno(), "data")
        assert isinstance(seen_s, Known)
        assert 25 <= seen_s.value < 26
        assert timeout_of(os.getpid(), ours.fileno(), "room") == Known(0.0)
    reading, writing = os.pipe()
    assert isinstance(timeout_of(os.getpid(), reading, "data"), Missing)
    os.close(reading)
    os.close(writing)
