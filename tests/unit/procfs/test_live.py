"""The parsers on what this kernel writes."""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path

import pytest

from hangdoc.model.reading import Known, Missing
from hangdoc.procfs.cmdline import parse_cmdline
from hangdoc.procfs.counters import parse_io
from hangdoc.procfs.descriptor import parse_fdinfo
from hangdoc.procfs.errors import ProcParseError
from hangdoc.procfs.stat import parse_stat
from hangdoc.procfs.status import parse_status
from hangdoc.procfs.thread import parse_schedstat, parse_switches
from hangdoc.procfs.wait import parse_system_call, parse_wait_channel

OWN = Path("/proc/self")
PR_SET_NAME = 15


def test_own_stat_line_is_ones_own() -> None:
    """A stat line says the pid and the parent, and that the reader runs."""
    line = parse_stat((OWN / "stat").read_bytes())
    assert (line.pid, line.ppid, line.state) == (os.getpid(), os.getppid(), "R")


def test_a_thread_named_like_a_stat_line_is_read_right() -> None:
    """A thread that calls itself "a) R 1 (b" keeps its name and its true state."""
    lines: list[bytes] = []

    def rename() -> None:
        ctypes.CDLL(None).prctl(PR_SET_NAME, b"a) R 1 (b", 0, 0, 0)
        lines.append(Path(f"/proc/self/task/{threading.get_native_id()}/stat").read_bytes())

    thread = threading.Thread(target=rename)
    thread.start()
    thread.join()
    line = parse_stat(lines[0])
    assert (line.name, line.ppid) == ("a) R 1 (b", os.getppid())


def test_own_status_agrees_with_the_system_calls() -> None:
    """The status file's user, pid and tracer are those the system calls tell."""
    status = parse_status((OWN / "status").read_bytes())
    assert (status.user_id, status.namespace_pids[0], status.tracer_pid) == (os.geteuid(), os.getpid(), 0)
    assert status.rss_bytes > 0


def test_own_clocks_move_forward() -> None:
    """schedstat is in nanoseconds and never goes back."""
    first = parse_schedstat(1, (OWN / "schedstat").read_bytes())
    second = parse_schedstat(1, (OWN / "schedstat").read_bytes())
    assert second.run_ns >= first.run_ns > 0


def test_own_switches_are_known() -> None:
    """This kernel counts context switches."""
    assert all(isinstance(count, Known) for count in parse_switches("cpu", (OWN / "status").read_bytes()))


def test_reading_counts_as_read() -> None:
    """rchar grows by what was read in between."""
    before = parse_io((OWN / "io").read_bytes())
    size = len(Path(__file__).read_bytes())
    assert parse_io((OWN / "io").read_bytes()).rchar_bytes - before.rchar_bytes >= size


def test_a_descriptor_tells_position_and_access(tmp_path: Path) -> None:
    """fdinfo says how far a file was written and that it is open for appending only."""
    with (tmp_path / "log").open("ab") as log:
        log.write(b"62 bytes" * 3)
        log.flush()
        found = parse_fdinfo((OWN / "fdinfo" / str(log.fileno())).read_bytes())
    assert (found.position, found.access, found.append) == (24, "w", True)


def test_whoever_reads_its_own_system_call_is_inside_one() -> None:
    """A thread that reads its own syscall file is in read, and its own wait channel is empty, not denied."""
    call = parse_system_call((OWN / "syscall").read_bytes())
    assert call is not None
    assert call.number >= 0
    assert parse_wait_channel("futex", "R", (OWN / "wchan").read_bytes()) == Known("")


def test_own_command_line_names_the_interpreter() -> None:
    """The first argument is the program."""
    assert "py" in parse_cmdline((OWN / "cmdline").read_bytes())[0]


@pytest.mark.parametrize("state", ["S", "D", "T", "t", "I"])
def test_zero_is_no_wait_channel(state: str) -> None:
    """The "0" of a thread that does not run means that the kernel would not tell."""
    assert isinstance(parse_wait_channel("futex", state, b"0"), Missing)


def test_the_error_says_which_file_and_what_was_in_it() -> None:
    """A refusal names the file and quotes the content."""
    with pytest.raises(ProcParseError, match=r"/proc schedstat file: b'1 2'"):
        parse_schedstat(1, b"1 2")
