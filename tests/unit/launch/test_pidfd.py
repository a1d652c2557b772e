"""A held process is the one that was meant, and only one function of the code base sends signals."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hangdoc.launch import pidfd
from hangdoc.launch.pidfd import ended, hold, may_signal, send
from hangdoc.launch.table import read_stat
from hangdoc.model.process import ProcessKey

ROOT = Path(__file__).resolve().parents[3]
SOURCES = [path for part in ("hangdoc", "probes") for path in sorted((ROOT / part).rglob("*.py"))]
SENDERS = {"pidfd_send_signal", "kill", "killpg", "terminate", "send_signal", "tgkill", "pthread_kill", "raise_signal"}
OWN_CHILDREN = {"NvmlChild", "Dump"}
"""Classes of the probes with a method called kill, which goes through send."""


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-S", "-c", "import signal; signal.pause()"])


def key_of(pid: int) -> ProcessKey:
    line = read_stat(Path("/proc"), pid)
    assert line is not None
    return ProcessKey(pid, line.start_ticks)


def senders(path: Path) -> set[tuple[str, str]]:
    """Every call in a file that could send a signal: where from, and what is called."""
    found: set[tuple[str, str]] = set()
    for function in ast.walk(ast.parse(path.read_text())):
        if not isinstance(function, ast.FunctionDef):
            continue
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in SENDERS:
                found.add((f"{path.relative_to(ROOT)}:{function.name}", ast.unparse(call.func)))
    return found


def test_one_function_sends_signals() -> None:
    """Only launch/pidfd.py's send hands a signal to the kernel; the probes' own kill methods call it."""
    calls = {call for path in SOURCES for call in senders(path)}
    direct = {(where, what) for where, what in calls if what.startswith(("os.", "signal."))}
    assert direct == {("hangdoc/launch/pidfd.py:send", "signal.pidfd_send_signal")}
    methods = {what for _, what in calls - direct}
    assert methods <= {"self._child.kill", "dump.kill", "self._running[-1].kill", "self.kill"}


def test_a_pid_of_another_start_time_is_not_held() -> None:
    """A pid whose process started at another time than the one meant is refused."""
    process = sleeper()
    try:
        key = key_of(process.pid)
        held = hold(key)
        assert held is not None
        held.close()
        assert hold(ProcessKey(key.pid, key.start_ticks + 1)) is None
        assert hold(ProcessKey(key.pid, key.start_ticks - 1)) is None
    finally:
        process.kill()
        process.wait()


def test_a_zombie_has_ended() -> None:
    """A dead process that nobody has waited for holds nothing and is not held."""
    process = sleeper()
    key = key_of(process.pid)
    handle = hold(key)
    assert handle is not None
    assert send(handle.descriptor, signal.SIGKILL)
    assert ended([handle], 60.0)
    assert handle.has_ended
    assert hold(key) is None
    process.wait()
    assert not send(handle.descriptor, signal.SIGKILL)
    handle.close()


def test_waiting_for_one_that_does_not_end_has_an_end() -> None:
    """Waiting ends when its time is over, and says that somebody is left."""
    process = sleeper()
    handle = hold(key_of(process.pid))
    assert handle is not None
    assert not ended([handle], 0.0)
    process.kill()
    process.wait()
    handle.close()


def test_asking_for_permission_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a signal would be allowed is asked with signal 0 only."""
    sent: list[int] = []
    real = signal.pidfd_send_signal

    def spy(descriptor: int, number: int, *rest: object) -> None:
        sent.append(number)
        real(descriptor, number)

    monkeypatch.setattr(pidfd.signal, "pidfd_send_signal", spy)
    handle = hold(key_of(os.getpid()))
    assert handle is not None
    assert may_signal(handle)
    assert set(sent) == {0}
    handle.close()


def test_a_whole_group_is_hit_by_its_dead_leaders_descriptor() -> None:
    """The descriptor of a process group's leader means the group even after the leader was reaped."""
    script = "import os,sys,signal\nif os.fork(): os._exit(0)\nos.write(1, str(os.getpid()).encode()); signal.pause()"
    leader = subprocess.Popen(
        [sys.executable, "-S", "-c", f"import sys; sys.stdin.read(1)\n{script}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        process_group=0,
    )
    assert leader.stdin is not None
    assert leader.stdout is not None
    group = hold(key_of(leader.pid))
    assert group is not None
    leader.stdin.write(b"x")
    leader.stdin.close()
    orphan = hold(key_of(int(os.read(leader.stdout.fileno(), 64))))
    assert orphan is not None
    leader.wait()
    try:
        assert send(group.descriptor, signal.SIGKILL, whole_group=True)
    except OSError:
        send(orphan.descriptor, signal.SIGKILL)
        pytest.skip("cannot be had here: this kernel has no PIDFD_SIGNAL_PROCESS_GROUP")
    assert ended([orphan], 60.0)
    for one in (group, orphan):
        one.close()
    leader.stdout.close()
