"""A pid or port that cannot be the target: one clear line, a remedy, the contract's exit code."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hangdoc.errors import ExitCode, HangdocError
from hangdoc.launch.find import find_launch
from tests.unit.launch.stage import Stage

NOBODY = 65534


def complaint(pid: int | None = None, **options: object) -> HangdocError:
    with pytest.raises(HangdocError) as caught:
        find_launch(pid, **options)  # type: ignore[arg-type]
    assert caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.remedy
    return caught.value


@pytest.mark.parametrize("pid", [0, -1])
def test_no_process_id(pid: int) -> None:
    """0 and negative numbers are wrong use."""
    assert complaint(pid).exit_code == ExitCode.USAGE


def test_hangdoc_itself() -> None:
    """hangdoc's own pid is wrong use."""
    error = complaint(os.getpid())
    assert (error.exit_code, error.message) == (ExitCode.USAGE, f"{os.getpid()} is hangdoc itself")


def test_a_pid_and_a_port() -> None:
    """Both at once is wrong use."""
    assert complaint(1, port=1).exit_code == ExitCode.USAGE


def test_no_such_process() -> None:
    """A pid beyond the kernel's range does not exist."""
    error = complaint(2**22 + 1)
    assert (error.exit_code, error.message) == (ExitCode.UNOBSERVABLE, f"there is no process {2**22 + 1}")


def test_a_kernel_thread() -> None:
    """kthreadd is named as what it is."""
    stat = Path("/proc/2/stat")
    if not stat.exists() or "(kthreadd)" not in stat.read_text():
        pytest.skip("kernel threads are not visible in this pid namespace")
    error = complaint(2)
    assert (error.exit_code, error.message) == (ExitCode.UNOBSERVABLE, "2 is a kernel thread (kthreadd)")


def test_a_thread_id() -> None:
    """The number of a thread is answered with the process it belongs to."""
    code = (
        "import threading, sys\nt = threading.Thread(target=sys.stdin.read)\nt.start()\nprint(t.native_id, flush=True)"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with child:
        assert child.stdout is not None
        thread = int(child.stdout.readline())
        error = complaint(thread)
        assert error.message == f"{thread} is a thread of process {child.pid}"
        assert error.remedy == f"give {child.pid} instead"
        assert error.exit_code == ExitCode.UNOBSERVABLE


def test_a_thread_of_hangdoc() -> None:
    """Its own threads are threads of its process."""
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    error = complaint(thread.native_id)
    done.set()
    thread.join()
    assert error.message == f"{thread.native_id} is a thread of process {os.getpid()}"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_another_users_launch_without_rights(stage: Stage) -> None:
    """What is world-readable is used: members, titles and ranks; the version is missing, and why."""
    server = stage.run(stage.server("a"), "a")
    code = (
        "import os, sys\nfrom hangdoc.launch.find import find_launch\n"
        f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "launch = find_launch(int(sys.argv[1]))\n"
        "print(len(launch.processes), launch.engine_version.reason, launch.processes[1].rank)"
    )
    answer = subprocess.run([sys.executable, "-c", code, str(server.pid)], capture_output=True, text=True, check=True)
    assert answer.stdout == "4 denied {'tp': 0}\n"


def fake(proc: Path, pid: int, comm: str = "x", mode: int = 0o644, argv: bytes = b"x\0") -> Path:
    home = proc / str(pid)
    (home / "task" / str(pid)).mkdir(parents=True)
    (home / "stat").write_text(f"{pid} ({comm}) S 1 {pid} {pid} 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 4096 3 0")
    (home / "stat").chmod(mode)
    (home / "cmdline").write_bytes(argv)
    return home


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_nothing_readable(tmp_path: Path) -> None:
    """A process directory whose files may not be read (hidepid): cannot be observed, with the remedy."""
    fake(tmp_path, 70, mode=0)
    for path in (tmp_path, *tmp_path.parents):
        path.chmod(path.stat().st_mode | 0o055)
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom hangdoc.errors import HangdocError\n"
        "from hangdoc.launch.find import find_launch\n"
        f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "try: find_launch(70, proc=Path(sys.argv[1]))\n"
        "except HangdocError as error: print(int(error.exit_code), error.message, '|', error.remedy)"
    )
    answer = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert answer.stdout == (
        "4 process 70 may not be looked at: /proc hides other users' processes | "
        "run hangdoc as the launch's owner, or with sudo\n"
    )


def test_a_shell_without_a_launch(tmp_path: Path) -> None:
    """An interactive shell that runs nothing is no launch."""
    fake(tmp_path, 70, "bash", argv=b"-bash\0")
    error = complaint(70, proc=tmp_path)
    assert (error.exit_code, error.message) == (ExitCode.UNOBSERVABLE, "70 (-bash) is no launch, and runs none")


def test_control_characters_of_a_target_do_not_reach_the_terminal(tmp_path: Path) -> None:
    """A command line in an error has lost its escape sequences."""
    fake(tmp_path, 70, "bash", argv=b"bash\0-\x1b[2J\0")
    assert "\x1b" not in complaint(70, proc=tmp_path).message
