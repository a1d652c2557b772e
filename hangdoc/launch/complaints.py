"""The sentences for a launch that cannot be found, or not told from another."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hangdoc.errors import ExitCode, HangdocError
from hangdoc.launch.age import by_age
from hangdoc.launch.table import is_kernel_thread, read_argv, read_stat
from hangdoc.model.process import ProcessKey

LONGEST_COMMAND = 100
"""Characters of a command line in a list of launches; arbitrary: about a terminal's line."""

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

UNOBSERVABLE = ExitCode.UNOBSERVABLE


@dataclass(frozen=True, slots=True)
class Candidate:
    """A launch that may be meant."""

    root: ProcessKey
    command: str
    age_s: float
    member_count: int


class SeveralLaunchesError(HangdocError):
    """More than one launch fits; candidates: all of them, oldest first."""

    def __init__(self, message: str, remedy: str, candidates: Sequence[Candidate]) -> None:
        super().__init__(message, remedy, ExitCode.USAGE)
        self.candidates = tuple(candidates)


def several_launches(what: str, candidates: Sequence[Candidate]) -> SeveralLaunchesError:
    """Build the error that lists launches: never a guess between them."""
    lines = [
        f"  {one.root.pid:>7}  started {_age(one.age_s)} ago, {one.member_count} processes: {one.command}"
        for one in sorted(candidates, key=lambda one: by_age(one.root))
    ]
    return SeveralLaunchesError(what, "name one of them by its pid:\n" + "\n".join(lines), candidates)


def shown(title: str) -> str:
    """Make a command line fit for a list: one line, no control characters, not too long.

    >>> shown("python -m x" + chr(27) + "[2J")
    'python -m x?[2J'
    """
    clean = "".join(char if char.isprintable() else "?" for char in title)
    return clean if len(clean) <= LONGEST_COMMAND else clean[: LONGEST_COMMAND - 3] + "..."


def age_s(key: ProcessKey) -> float:
    """Say how long ago a process started."""
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - key.start_ticks / TICKS_PER_SECOND)


def _age(seconds: float) -> str:
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"


def check_pid(pid: int, proc: Path, own_pid: int) -> None:
    """Raise the error that fits when a pid cannot be the target."""
    if pid <= 0:
        raise HangdocError(f"{pid} is not a process id", "give the pid of any process of the launch, or --port")
    if pid == own_pid:
        raise HangdocError(f"{pid} is hangdoc itself", "give the pid of any process of the launch")
    try:
        stat = read_stat(proc, pid)
    except PermissionError:
        raise _hidden(pid) from None
    if stat is None:
        raise _absent(pid, proc)
    owner = _thread_group(pid, proc)
    if owner not in {None, pid}:
        raise HangdocError(f"{pid} is a thread of process {owner}", f"give {owner} instead", UNOBSERVABLE)
    if is_kernel_thread(stat, read_argv(proc, pid)):
        raise HangdocError(f"{pid} is a kernel thread ({stat.name})", "give the pid of a program", UNOBSERVABLE)


def _absent(pid: int, proc: Path) -> HangdocError:
    if proc == Path("/proc") and _exists(pid):
        return _hidden(pid)
    remedy = "look for the launch with `hangdoc watch` without a pid, or give --port"
    return HangdocError(f"there is no process {pid}", remedy, UNOBSERVABLE)


def _exists(pid: int) -> bool:
    try:
        os.close(os.pidfd_open(pid))
    except OSError:
        return False
    return True


def _hidden(pid: int) -> HangdocError:
    remedy = "run hangdoc as the launch's owner, or with sudo"
    return HangdocError(f"process {pid} may not be looked at: /proc hides other users' processes", remedy, UNOBSERVABLE)


def _thread_group(pid: int, proc: Path) -> int | None:
    # A thread has a directory in /proc too, only not listed; its task directory is that of its process.
    try:
        threads = {entry.name for entry in (proc / str(pid) / "task").iterdir()}
    except OSError:
        return None
    listed = threads & {entry.name for entry in proc.iterdir()}
    return int(listed.pop()) if len(listed) == 1 else pid


def no_launch() -> HangdocError:
    """Build the error for a user without a launch."""
    remedy = "give the pid of any process of the launch, or --port"
    return HangdocError("no SGLang, vLLM or torchrun launch of yours is running", remedy, ExitCode.USAGE)


def no_launch_below(pid: int, command: str) -> HangdocError:
    """Build the error for a shell or manager that runs nothing."""
    remedy = "give the pid of any process of the launch"
    return HangdocError(f"{pid} ({shown(command)}) is no launch, and runs none", remedy, UNOBSERVABLE)


def no_launch_on_port(port: int, holder: str = "", *, is_hidden: bool = False) -> HangdocError:
    """Build the error for a port that no launch has."""
    if is_hidden:
        remedy = "run hangdoc as the launch's owner, or with sudo"
        return HangdocError(f"who listens on port {port} may not be looked at", remedy, UNOBSERVABLE)
    remedy = "give the pid of any process of the launch"
    taken = f"port {port} belongs to {shown(holder)}, which is no launch" if holder else ""
    return HangdocError(taken or f"no launch listens on port {port} or was started with it", remedy, UNOBSERVABLE)
