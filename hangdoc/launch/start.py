"""Start a launch: the one place that does, for who watches it from its first moment and for who starts it again."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex

from hangdoc.errors import HangdocError
from hangdoc.launch.marker import VARIABLE, read_marker
from hangdoc.launch.pidfd import Handle, ended
from hangdoc.launch.table import listed_pids, read_argv, read_stat
from hangdoc.model.process import ProcessKey

PRIVATE_MODE = 0o600

EXEC_S, LOOK_AGAIN_S = 1.0, 0.001
"""How long the command line may take to be there, and how often it is looked for. Arbitrary: it is there at once."""


@dataclass(frozen=True)
class Order:
    """What to start and how.

    environment: all of it, None: as hangdoc's own; the marker is added in any case. own_session: detached from the
    terminal and from hangdoc's process group. output: a file that takes standard output and error, appended to; None:
    they are hangdoc's. signal_mask: the signals that are blocked in the launch, None: as in the calling thread.
    """

    argv: tuple[str, ...]
    cwd: Path | None = None
    environment: Mapping[str, str] | None = None
    own_session: bool = False
    output: Path | None = None
    signal_mask: Iterable[int] | None = None


@dataclass(frozen=True)
class Started:
    """A launch that hangdoc started: its first process, held by descriptor. marker: in the environment of all of it."""

    handle: Handle
    marker: str
    process: subprocess.Popen[bytes] = field(repr=False)

    @property
    def pid(self) -> int:
        """The pid of the first process: it is not given to anybody else before it was waited for."""
        return self.handle.key.pid

    def has_ended(self) -> bool:
        """Say whether it has ended; it stays a zombie, whose exit status others can read."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def living_pid(self, proc: Path = Path("/proc")) -> int | None:
        """Return a pid by which the launch can be named: its first process's, else of a member; None: nobody lives."""
        with suppress(ChildProcessError):  # it has been waited for
            if not self.has_ended():
                return self.pid
        return next(iter(self.living(proc)), None)

    def living(self, proc: Path = Path("/proc")) -> list[int]:
        """Return the pids that carry the launch's marker, which a zombie does not show any more, in order."""
        found = []
        for pid in sorted(listed_pids(proc)):
            with suppress(PermissionError):  # of another user: not ours
                stat = read_stat(proc, pid)
                if stat is not None and read_marker(proc, ProcessKey(pid, stat.start_ticks)) == self.marker:
                    found.append(pid)
        return found

    @property
    def code(self) -> int | None:
        """Its exit code, 128 + N after signal N; None while it goes on. It stays a zombie."""
        told = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if told is None:
            return None
        return told.si_status if told.si_code == os.CLD_EXITED else 128 + told.si_status

    def bury(self) -> int:
        """Wait for it, let go of it and return its exit code, 128 + N after signal N."""
        code = self.process.wait()
        self.handle.close()
        return 128 - code if code < 0 else code


def start(order: Order) -> Started:
    """Start a launch; HangdocError (2) when there is no such program or it may not be run.

    With a signal_mask the child runs a line of Python before it becomes the program: call it early, while no thread of
    hangdoc holds a lock.
    """
    marker = token_hex(8)
    process = _spawn(order, {**(os.environ if order.environment is None else order.environment), VARIABLE: marker})
    descriptor = os.pidfd_open(process.pid)
    stat = read_stat(Path("/proc"), process.pid)
    if stat is None:  # cannot be: nobody has waited for it yet
        raise HangdocError(f"process {process.pid} was started and cannot be seen in /proc", "mount /proc")
    started = Started(Handle(ProcessKey(process.pid, stat.start_ticks), descriptor), marker, process)
    _wait_for_its_command_line(started)
    return started


def _spawn(order: Order, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    mask = None if order.signal_mask is None else set(order.signal_mask)
    with ExitStack() as files:
        try:
            output = None if order.output is None else files.enter_context(os.fdopen(_append(order.output), "wb"))
            return subprocess.Popen(
                order.argv,
                cwd=order.cwd,
                env=environment,
                stdin=subprocess.DEVNULL if order.own_session else None,
                stdout=output,
                stderr=None if output is None else subprocess.STDOUT,
                start_new_session=order.own_session,
                preexec_fn=None if mask is None else lambda: _set_mask(mask),  # noqa: PLW1509 - see start
            )
        except (OSError, ValueError) as error:
            raise _not_started(order, error) from error


def _wait_for_its_command_line(started: Started) -> None:
    """The kernel tells of a successful exec a moment before /proc has the new command line and environment."""
    deadline_s = time.monotonic() + EXEC_S
    while not read_argv(Path("/proc"), started.pid) and time.monotonic() < deadline_s:
        if ended([started.handle], LOOK_AGAIN_S):
            return


def _append(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, PRIVATE_MODE)


def _set_mask(mask: set[int]) -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _not_started(order: Order, error: OSError | ValueError) -> HangdocError:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    what = getattr(error, "filename", None) or order.argv[0]
    return HangdocError(f"{what}: {reason}; nothing was started", "give the command as you would type it in a shell")
