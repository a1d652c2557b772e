"""`watch --exec`: signals, exit codes and faults between a launch and who started it."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.commands import LONGEST_S, argv, complaint, environment, run, wait_until
from tests.unit.unattended.launches import DIES_WITH_HANGDOC, ECHOES, executed, files_in, free_port, line_of, python


@pytest.mark.parametrize(("order", "code"), [("exit 0", 0), ("exit 7", 7), ("kill 9", 137), ("kill 11", 139)])
def test_the_exit_code_is_the_launchs(order: str, code: int) -> None:
    """The launch's exit code comes back as it is, and 128 + N after signal N; its output is untouched."""
    with executed(launch=python(ECHOES)) as hangdoc:
        out, err = hangdoc.communicate(f"{order}\n".encode(), timeout=LONGEST_S)
    assert (hangdoc.returncode, out) == (code, b"ready\n")
    assert b"Traceback" not in err


def test_signals_are_passed_on() -> None:
    """Every signal that somebody may mean for the server reaches it, once, and hangdoc goes on."""
    with executed(launch=python(ECHOES)) as hangdoc:
        assert hangdoc.stdout is not None
        said = hangdoc.stdout.fileno()
        assert line_of(said) == "ready"
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
            hangdoc.send_signal(number)
            assert line_of(said) == number.name
        out, _ = hangdoc.communicate(b"exit 3\n", timeout=LONGEST_S)
    assert (hangdoc.returncode, out) == (3, b"")


def test_no_thread_of_hangdocs_takes_a_signal(tmp_path: Path) -> None:
    """Whatever is kept beside the watch, a signal is only taken to be passed on: elsewhere it would end hangdoc."""
    options = ("--record", str(tmp_path / "evidence"), "--state", str(tmp_path / "state"))
    options += ("--metrics-port", str(free_port()))
    with executed(*options, launch=python(ECHOES)) as hangdoc:
        assert hangdoc.stdout is not None
        assert line_of(hangdoc.stdout.fileno()) == "ready"
        wait_until(lambda: bool(files_in(tmp_path / "evidence", "window-*")))
        blocked = [
            mask_of(task) for task in Path(f"/proc/{hangdoc.pid}/task").iterdir() if int(task.name) != hangdoc.pid
        ]
        hangdoc.communicate(b"exit 0\n", timeout=LONGEST_S)
    masks = [mask for mask in blocked if mask is not None]
    assert len(masks) > 5
    assert all(mask >> (signal.SIGTERM - 1) & 1 for mask in masks)


def mask_of(task: Path) -> int | None:
    """The signals that a thread blocks; None when it has ended."""
    try:
        status = (task / "status").read_text()
    except OSError:
        return None
    return int(status.partition("SigBlk:")[2].split()[0], 16)


def test_the_launch_has_hangdocs_signal_mask() -> None:
    """The signals that hangdoc takes one by one are not blocked in the launch, nor in what it starts."""
    source = "import signal; print(sorted(signal.pthread_sigmask(0, ())))"
    with executed(launch=python(source)) as hangdoc:
        out, _ = hangdoc.communicate(timeout=LONGEST_S)
    assert out == b"[]\n"


def terminal_session(command: list[str]) -> tuple[int, int]:
    """Start a command as the foreground of a terminal of its own; its pid, and our end of the terminal."""
    pid, ours = pty.fork()
    if pid == 0:
        os.execvpe(command[0], command, environment())
    return pid, ours


def test_a_terminals_ctrl_c_comes_once() -> None:
    """What a terminal sends reaches the launch by the kernel, and is not sent once more by hangdoc."""
    pid, ours = terminal_session(argv("watch", "--exec", "--", *python(ECHOES)))
    assert line_of(ours) == "ready"
    os.write(ours, b"\x03")
    assert line_of(ours).endswith("SIGINT")
    os.kill(pid, signal.SIGUSR1)  # passed on: whatever would come of the first one has come before it
    assert line_of(ours) == "SIGUSR1"
    os.write(ours, b"exit 4\n")
    heard = []
    try:
        while True:
            heard.append(line_of(ours))
    except (OSError, AssertionError):
        pass
    assert "SIGINT" not in heard
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 4
    os.close(ours)


SHELL = """
import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execvp(sys.argv[1], sys.argv[1:])
_, status = os.waitpid(pid, os.WUNTRACED)
os.tcsetpgrp(0, os.getpgrp())
print("stopped" if os.WIFSTOPPED(status) else status, flush=True)
os.tcsetpgrp(0, pid)
os.killpg(pid, signal.SIGCONT)
_, status = os.waitpid(pid, 0)
os.tcsetpgrp(0, os.getpgrp())
print("code", os.waitstatus_to_exitcode(status), flush=True)
"""
"""What a shell does with a job that is stopped by Ctrl-Z and goes on with fg."""


def test_ctrl_z_and_fg() -> None:
    """Ctrl-Z stops hangdoc and the launch together; both go on in the foreground."""
    command = argv("watch", "--exec", "--", *python(ECHOES))
    pid, ours = terminal_session([sys.executable, "-ISc", SHELL, *command])
    assert line_of(ours) == "ready"
    os.write(ours, b"\x1a")
    assert line_of(ours).endswith("stopped")
    os.write(ours, b"exit 6\n")
    while (line := line_of(ours)) != "code 6":
        assert not line.startswith("code"), line
    os.waitpid(pid, 0)
    os.close(ours)


@pytest.mark.parametrize("program", ["no-such-program", "/etc/passwd", "/"])
def test_what_cannot_be_started(program: str) -> None:
    """A command that cannot be run is one clear line and 2."""
    ended = run("watch", "--exec", "--", program)
    assert ended.code == 2
    assert program in complaint(ended)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--exec",),
        ("--exec", "--"),
        ("--", "true"),
        ("--exec", "--once", "--", "true"),
        ("--exec", "1", "--", "true"),
        ("--exec", "--port", "30000", "--", "true"),
        ("--exec", "--until", "hang", "--", "true"),
        ("--exec", "--json", "--", "true"),
        ("--once", "--state", "/tmp/x", "1"),
        ("--once", "--on-hang", "true", "1"),
        ("1", "--metrics-port", "many"),
        ("1", "--metrics-port", ":9400"),
        ("1", "--metrics-port", "0"),
        ("--exec", "--state", "/tmp", "--", "true"),
        ("--exec", "--state", "/etc/passwd/state", "--", "true"),
        ("--exec", "--record", "/etc/passwd/folder", "--", "true"),
        ("1", "--metrics-port", "localhost:70000"),
    ],
)
def test_wrong_use(arguments: tuple[str, ...]) -> None:
    """Options that contradict each other are refused with 2 before anything is started."""
    ended = run("watch", *arguments)
    assert ended.code == 2
    complaint(ended)


def test_a_fault_of_hangdoc_does_not_end_the_launch(tmp_path: Path) -> None:
    """A watch that fails says so, and signals and the exit code are passed on as before."""
    record = tmp_path / "file.hangtrace"
    record.write_text("no trace at all\n")
    with executed("--record", str(record), launch=python(ECHOES)) as hangdoc:
        assert hangdoc.stdout is not None
        assert hangdoc.stderr is not None
        assert line_of(hangdoc.stdout.fileno()) == "ready"
        assert str(record) in line_of(hangdoc.stderr.fileno())
        assert "goes on without being watched" in line_of(hangdoc.stderr.fileno())
        hangdoc.send_signal(signal.SIGTERM)
        assert line_of(hangdoc.stdout.fileno()) == "SIGTERM"
        hangdoc.communicate(b"exit 9\n", timeout=LONGEST_S)
    assert hangdoc.returncode == 9


def test_sigkill_of_hangdoc_leaves_the_launch() -> None:
    """A launch whose hangdoc was killed goes on: it depends on nothing that hangdoc keeps."""
    source = ECHOES.removeprefix(DIES_WITH_HANGDOC)
    with executed(launch=python(f"import os; os.write(1, b'%d\\n' % os.getpid())\n{source}")) as hangdoc:
        assert hangdoc.stdout is not None
        assert hangdoc.stdin is not None
        launch = os.pidfd_open(int(line_of(hangdoc.stdout.fileno())))
        assert line_of(hangdoc.stdout.fileno()) == "ready"
        hangdoc.kill()
        hangdoc.wait()
        signal.pidfd_send_signal(launch, signal.SIGTERM)
        assert line_of(hangdoc.stdout.fileno()) == "SIGTERM"
        hangdoc.stdin.write(b"exit 0\n")
        hangdoc.stdin.flush()
        wait_until(lambda: not alive(launch))
    os.close(launch)


def alive(descriptor: int) -> bool:
    try:
        signal.pidfd_send_signal(descriptor, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("script", ["exec", "read go; exec", "read go;"])
def test_a_script_that_becomes_a_server(script: str, tmp_path: Path) -> None:
    """Behind `sh -c`, at once or after a while, the engine is known as soon as its launcher is there."""
    state, launcher = tmp_path / "state", tmp_path / "torchrun"
    launcher.write_text(f"#!{sys.executable} -IS\n{DIES_WITH_HANGDOC}import signal; signal.pause()\n")
    launcher.chmod(0o755)
    source = f"{script} {launcher} --standalone x.py"
    with executed(
        "--state", str(state), "--record", str(tmp_path / "evidence"), launch=["sh", "-c", source]
    ) as hangdoc:
        assert hangdoc.stdin is not None
        if "read" in script:
            assert hangdoc.stderr is not None
            wait_until(lambda: bool(files_in(tmp_path / "evidence", "window-*")))  # it is watched as any other program
            hangdoc.stdin.write(b"go\n")
            hangdoc.stdin.flush()
        wait_until(lambda: '"engine": "torchrun"' in state.read_text() if state.exists() else False)


ON_TERM = "import os, signal; signal.signal(15, lambda *_: os._exit(42)); signal.pause()"


def ended_when_watched(tmp_path: Path, source: str, *, terminate: bool) -> tuple[int, dict[str, Any], str]:
    """Exit code, state and standard error of a launch that ends when it has been looked at."""
    state, evidence = tmp_path / "state", tmp_path / "evidence"
    arguments = ("--state", str(state), "--record", str(evidence))
    with executed(*arguments, launch=python(DIES_WITH_HANGDOC + source)) as hangdoc:
        wait_until(lambda: bool(files_in(evidence, "window-*")))
        if terminate:
            hangdoc.send_signal(signal.SIGTERM)
        _, err = hangdoc.communicate(b"go\n", timeout=LONGEST_S)
    return hangdoc.returncode, json.loads(state.read_text()), err.decode()


def test_an_end_that_was_asked_for_is_no_crash(tmp_path: Path) -> None:
    """A launch that gets SIGTERM through hangdoc and ends with a code of its own was shut down."""
    code, state, err = ended_when_watched(tmp_path, ON_TERM, terminate=True)
    assert (code, state["verdict"], state["ended"]) == (42, "healthy", True), err
    assert "asked to end by SIGTERM" in err


def test_a_lonely_failure_has_nobody_who_waits(tmp_path: Path) -> None:
    """A launch of one process that fails has crashed, and nobody is said to wait for it."""
    code, state, err = ended_when_watched(tmp_path, "input(); raise SystemExit(3)", terminate=False)
    assert (code, state["verdict"], state["ended"]) == (3, "crashed", True), err
    assert "ended with exit code 3" in err
    assert "wait for it" not in err


def test_an_end_before_the_first_look(tmp_path: Path) -> None:
    """A launch that is over at once is said to be, with its code; the state says that it ended."""
    state = tmp_path / "state"
    with executed("--state", str(state), launch=["sh", "-c", "exit 7"]) as hangdoc:
        _, err = hangdoc.communicate(timeout=LONGEST_S)
    assert (hangdoc.returncode, json.loads(state.read_text())["ended"]) == (7, True)
    assert err.decode() == "hangdoc: the launch ended with 7 before the first look at it\n"


DAEMON = """
import os
input()
told, tell = os.pipe()
if os.fork():
    os.read(told, 1)
    os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.write(tell, b"x")
for number in (0, 1, 2): os.close(number)
import time
time.sleep(60)
"""


def test_a_launch_that_becomes_a_daemon_has_not_ended(tmp_path: Path) -> None:
    """The first process left with 0 and another goes on: neither healthy nor ended, and its pid is named."""
    code, state, err = ended_when_watched(tmp_path, DAEMON, terminate=False)
    left = re.search(r"The first process left with 0; .* unwatched: pid (\d+)", err)
    assert left is not None, err
    os.kill(int(left[1]), signal.SIGKILL)
    assert (code, state["verdict"], state["ended"]) == (0, "undetermined", False)


def test_a_disk_that_takes_nothing_does_not_keep_a_launch_from_starting() -> None:
    """Where state and record cannot be written, the launch is started and both are complained of."""
    ended = run("watch", "--exec", "--state", "/sys/state", "--record", "/sys/evidence", "--", "sh", "-c", "exit 5")
    assert ended.code == 5
    assert "/sys/evidence" in ended.err
    assert "/sys/state cannot be written" in ended.err
