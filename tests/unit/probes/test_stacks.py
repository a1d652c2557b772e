"""The stacks probe with the real py-spy, with none, and with one that misbehaves."""

from __future__ import annotations

import os
import signal
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hangdoc.errors import HangdocError
from hangdoc.logs.pyspy import parse_dump
from hangdoc.model.process import Process
from hangdoc.model.reading import Known
from hangdoc.model.snapshot import Sample
from hangdoc.model.stack import Stack, Stacks
from hangdoc.procfs.stat import parse_stat
from hangdoc_probes import _pyspy, stacks
from tests.unit.probes.targets import context, known, missing, process_of, round_of, running, take

DEEP = """
def innermost(): say("ready"); sys.stdin.read()
def middle(): innermost()
middle()
"""
IDLE = 'say("ready"); sys.stdin.read()'
SPIN = 'say("ready")\nwhile True: pass'
LEADERLESS = """
import ctypes
def outlive():
    while "State:\\tZ" not in open(f"/proc/self/task/{os.getpid()}/status").read(): pass
    say("ready"); threading.Event().wait()
threading.Thread(target=outlive).start()
ctypes.CDLL(None).pthread_exit(None)
"""
REAL = _pyspy.find()

Fake = Callable[[str], Path]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Put a shell script in py-spy's place; it appends a line to `calls` each time."""

    def install(body: str) -> Path:
        program = tmp_path / "py-spy"
        program.write_text(f"#!/bin/sh\necho $$ >> {tmp_path}/calls\n{body}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(_pyspy, "find", lambda: program)
        return tmp_path / "calls"

    return install


def state(pid: int) -> str:
    return parse_stat(Path(f"/proc/{pid}/stat").read_bytes()).state


def ended(calls: Path) -> bool:
    return all(not Path(f"/proc/{pid}").exists() for pid in calls.read_text().split())


def test_frames_are_innermost_first_and_carry_full_paths() -> None:
    """The stack begins with the function that waits."""
    table: list[Stack] = []
    with running(DEEP) as target:
        session = stacks.PROBE.open(context(table))
        (sample,) = session.take(round_of(target.process))
        session.close()
    (thread,) = known(sample, Stacks).threads
    assert (thread.tid, thread.name) == (target.pid, "MainThread")
    assert [frame.function for frame in table[thread.stack]] == ["innermost", "middle", "<module>"]


def test_a_process_without_python_costs_no_py_spy(fake: Fake) -> None:
    """What runs no interpreter is Missing unsupported, and py-spy is never started for it."""
    calls = fake("exit 1")
    child = os.posix_spawn("/bin/sleep", ["sleep", "1000"], os.environ)
    try:
        (sample,) = take(stacks.PROBE, process_of(child))
        assert missing(sample).reason == "unsupported"
        assert not calls.exists()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_without_py_spy_the_remedy_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """py-spy absent is Missing not-installed, and the check says the same."""
    monkeypatch.setattr(_pyspy, "find", lambda: None)
    with running(IDLE) as target:
        (sample,) = take(stacks.PROBE, target.process)
    assert missing(sample).reason == "not-installed"
    assert "pip install py-spy" in missing(sample).remedy
    assert stacks.PROBE.check(Path("/proc")) == sample.reading


def test_the_py_spy_beside_the_interpreter_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """sudo drops PATH, so hangdoc's own environment is looked at before it; PATH is the second choice."""
    for place in ("own", "path"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "py-spy").write_text("#!/bin/sh\n")
        (tmp_path / place / "py-spy").chmod(0o755)
    monkeypatch.setattr("sys.executable", str(tmp_path / "own" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert _pyspy.find() == tmp_path / "own" / "py-spy"
    (tmp_path / "own" / "py-spy").unlink()
    assert _pyspy.find() == tmp_path / "path" / "py-spy"
    monkeypatch.setenv("PATH", "")
    assert _pyspy.find() is None


def test_a_py_spy_that_hangs_is_killed_and_the_others_are_read(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dump past its deadline is Missing timeout; no py-spy stays behind, and another process's dump succeeds."""
    monkeypatch.setattr(_pyspy, "DEADLINE_S", 2.0)
    with running(IDLE) as stuck, running(IDLE) as other:
        calls = fake(f'case "$*" in *{stuck.pid}*) exec sleep 1000;; esac\nexec {REAL} "$@"')
        found = {sample.process: sample for sample in take(stacks.PROBE, stuck.process, other.process)}
    assert missing(found[stuck.process.key]).reason == "timeout"
    known(found[other.process.key], Stacks)
    assert ended(calls)


def test_a_racy_failure_is_tried_again(fake: Fake, tmp_path: Path) -> None:
    """py-spy fails twice on a live process, then works: the reading is Known."""
    calls = fake(f'[ $(wc -l < {tmp_path}/calls) -lt 3 ] && {{ echo "Error: racy" >&2; exit 1; }}\nexec {REAL} "$@"')
    with running(IDLE) as target:
        (sample,) = take(stacks.PROBE, target.process)
    known(sample, Stacks)
    assert len(calls.read_text().split()) == 3


def test_a_lasting_failure_is_told_in_py_spys_words(fake: Fake) -> None:
    """After three attempts the reading is Missing failed with the first line of the complaint."""
    calls = fake('echo "Error: Failed to copy PyCodeObject" >&2; exit 1')
    with running(IDLE) as target:
        (sample,) = take(stacks.PROBE, target.process)
    assert missing(sample).reason == "failed"
    assert missing(sample).detail.endswith("Failed to copy PyCodeObject")
    assert len(calls.read_text().split()) == 3


def test_output_that_is_no_dump_is_a_failure(fake: Fake) -> None:
    """A py-spy that succeeds and writes something else is told, not guessed at."""
    fake("echo hello")
    with running(IDLE) as target:
        (sample,) = take(stacks.PROBE, target.process)
    assert missing(sample).reason == "failed"


def test_a_target_that_py_spy_left_stopped_goes_on(fake: Fake) -> None:
    """When the target is stopped after py-spy was killed and was not before, hangdoc lets it go on."""
    with running(IDLE) as target:
        fake(f"kill -STOP {target.pid}; exec sleep 1000")
        session = stacks.StacksSession(context())
        taking = threading.Thread(target=lambda: list(session.take(round_of(target.process))))
        taking.start()
        os.waitid(os.P_PID, target.pid, os.WSTOPPED | os.WNOWAIT)
        session.interrupt()
        taking.join()
        os.waitid(os.P_PID, target.pid, os.WCONTINUED)
        assert state(target.pid) != "T"


def test_a_target_that_was_stopped_stays_stopped(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A target that its user stopped is read, and stays stopped even after a dump was killed."""
    with running(DEEP) as target:
        os.kill(target.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, target.pid, os.WSTOPPED | os.WNOWAIT)
        (sample,) = take(stacks.PROBE, target.process)
        known(sample, Stacks)
        monkeypatch.setattr(_pyspy, "DEADLINE_S", 0.2)
        fake("exec sleep 1000")
        take(stacks.PROBE, target.process)
        assert state(target.pid) == "T"


def test_interrupting_ends_a_take_and_leaves_no_py_spy(fake: Fake, tmp_path: Path) -> None:
    """When an observation is over, a dump in progress is killed at once, and those that waited never start."""
    os.mkfifo(tmp_path / "started")
    calls = fake(f"echo > {tmp_path}/started; exec sleep 1000")
    with running(IDLE) as one, running(IDLE) as two, running(IDLE) as three:
        session = stacks.StacksSession(context())
        found: list[Sample] = []
        now = round_of(one.process, two.process, three.process)
        taking = threading.Thread(target=lambda: found.extend(session.take(now)))
        taking.start()
        (tmp_path / "started").read_text()
        session.interrupt()
        taking.join()
        session.close()
        assert {missing(sample).reason for sample in found} == {"not-taken"}
        assert ended(calls)


@pytest.mark.parametrize("how", ["zombie", "leaderless", "gone"])
def test_what_py_spy_cannot_read_is_told_without_it(how: str, fake: Fake) -> None:
    """A zombie, a process whose main thread ended and one that is gone cost no py-spy."""
    calls = fake("exit 1")
    with running(LEADERLESS if how == "leaderless" else IDLE) as target:
        process = target.process
        if how != "leaderless":
            target.child.kill()
            os.waitid(os.P_PID, target.pid, os.WEXITED | os.WNOWAIT)
        if how == "gone":
            target.child.wait()
        (sample,) = take(stacks.PROBE, process)
    assert missing(sample).reason == ("gone" if how == "gone" else "unsupported")
    assert not calls.exists()


@pytest.mark.skipif(os.geteuid() != 0 or not Path("/usr/bin/unshare").exists(), reason="needs root and unshare")
def test_a_target_in_a_container_has_the_numbers_seen_from_here() -> None:
    """In a process namespace of its own the main thread calls itself 1: the reading has hangdoc's number for it."""
    with running(IDLE, "unshare", "--pid", "--fork", "--kill-child") as outer:
        inner = int(Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text())
        while state(inner) != "S":
            pass
        (sample,) = take(stacks.PROBE, process_of(inner))
    (thread,) = known(sample, Stacks).threads
    assert (thread.tid, thread.active) == (inner, False)


def test_helpers_are_dumped_seldom(fake: Fake) -> None:
    """A resource tracker is not worth a dump each time: it gets one in eight rounds."""
    calls = fake(f'exec {REAL} "$@"')
    with running(IDLE) as target:
        tracker = Process(key=target.process.key, ppid=1, role="other", title="python -c resource_tracker.main(5)")
        session = stacks.PROBE.open(context())
        for _ in range(9):
            list(session.take(round_of(tracker)))
        session.close()
    assert len(calls.read_text().split()) == 2


@pytest.mark.parametrize(("program", "dumps"), [(IDLE, 3), (SPIN, 6)])
def test_who_runs_is_dumped_in_every_round(fake: Fake, program: str, dumps: int) -> None:
    """In six rounds a process that sleeps is dumped three times, one that runs six times."""
    calls = fake(f'exec {REAL} "$@"')
    with running(program) as target:
        session = stacks.PROBE.open(context())
        for _ in range(6):
            list(session.take(round_of(target.process)))
        session.close()
    assert len(calls.read_text().split()) == dumps


@pytest.mark.parametrize("data", [b"", b"{}x", b"[1]", b'[{"frames": 3}]', b"[" * 100_000, b'[{"thread_name": "x"}]'])
def test_a_broken_dump_is_a_typed_error(data: bytes) -> None:
    """Whatever py-spy writes, the parser answers with threads or with its one error."""
    with pytest.raises(HangdocError):
        parse_dump(data)


def test_the_real_py_spy_is_found_here() -> None:
    """hangdoc's own environment has py-spy, because it depends on it."""
    assert isinstance(stacks.PROBE.check(Path("/proc")), Known)
