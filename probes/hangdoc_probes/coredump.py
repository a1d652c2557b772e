"""The kernel that a rank's card is stuck in, from a CUDA core dump: only when somebody asked for it.

CUDA writes one when something is written into a pipe of its own, if the launch was started so. The server may die of it
(on one H200 it did, within seconds): hangdoc never asks by itself, and starts and attaches nothing to the process.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hangdoc.launch.pidfd import send
from hangdoc.logs.cuda_gdb import kernels_of
from hangdoc.model.kernel_dump import KernelDump
from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Payload, Sample
from hangdoc.sampling.probe import Context, Probe, Round, Session
from hangdoc_probes._reading import attempt, gone
from hangdoc_probes._reading import read_table as read_file
from hangdoc_probes._tids import numbers_of

NAME = "coredump"
ENABLED = "CUDA_ENABLE_USER_TRIGGERED_COREDUMP"
PIPE, FILE = "CUDA_COREDUMP_PIPE", "CUDA_COREDUMP_FILE"
DEFAULT_PIPE, DEFAULT_FILE = "corepipe.cuda.%h.%p", "core_%t_%h_%p.nvcudmp"
"""CUDA's own, in the process's working directory."""

WRITTEN_S = 20.0
"""How long a dump may take to come and to stop growing; 3 s were measured. Arbitrary above that."""
STILL_S = 1.0
"""How long its size has to stay the same. Arbitrary."""
NAMED_S = 20.0
"""For cuda-gdb. Arbitrary."""
KILLED_S = 1.0
"""How long a killed cuda-gdb may take to go. Arbitrary."""
POLL_S = 0.05
MOST = 8
"""Ranks that are asked. Arbitrary: those of one node."""

NOT_ENABLED = Missing(
    NAME,
    "unsupported",
    "the launch was started without user triggered dumps of CUDA",
    f"start it again with them: hangdoc relaunch PID --set {ENABLED}=1",
)
NOT_INSTALLED = Missing(
    NAME, "not-installed", "cuda-gdb is not on PATH", "open the file with cuda-gdb: target cudacore FILE"
)


@dataclass(frozen=True)
class _Places:
    """Where a process's pipe is, and where its dump will be."""

    pipe: str
    directory: str
    name: re.Pattern[str]


class _Debugger:
    """cuda-gdb, looking at a dump."""

    def __init__(self, program: str, path: str) -> None:
        self._process = subprocess.Popen(
            [program, "-batch", "-nx", "-ex", f"target cudacore {path}", "-ex", "info cuda kernels"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
        )
        self._exit = os.pidfd_open(self._process.pid)

    def said(self, timeout_s: float) -> str | None:
        """Return what it printed; None when it took too long and was ended."""
        try:
            return self._process.communicate(timeout=timeout_s)[0]
        except subprocess.TimeoutExpired:
            self.kill()
            with suppress(subprocess.TimeoutExpired):  # what the kernel holds, or its pipe, is left behind
                self._process.communicate(timeout=KILLED_S)
            return None
        finally:
            descriptor, self._exit = self._exit, -1
            os.close(descriptor)

    def kill(self) -> None:
        """End it, from any thread; it may have ended already."""
        with suppress(OSError):
            send(self._exit, signal.SIGKILL)


class CoredumpSession:
    """Asks each rank for a dump, one after the other."""

    def __init__(self, context: Context) -> None:
        self._proc = context.proc
        self._over = False
        self._child: _Debugger | None = None

    @property
    def children_cpu_s(self) -> float:
        """cuda-gdb runs once, at the end: its time is not counted."""
        return 0.0

    def interrupt(self) -> None:
        """Wait for nothing any more."""
        self._over = True
        if self._child is not None:
            self._child.kill()

    def close(self) -> None:
        """Nothing is held."""

    def take(self, now: Round) -> Iterable[Sample]:
        """Ask every rank once."""
        for process in [one for one in now.processes if one.role in {"scheduler", "worker"}][:MOST]:
            if self._over:
                return
            yield from self._sample(process)

    def _sample(self, process: Process) -> Iterator[Sample]:
        reading = attempt(NAME, lambda: self._read(process.key))
        taken_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        yield Sample(probe=NAME, process=process.key, taken_ns=taken_ns, reading=reading)

    def _read(self, key: ProcessKey) -> Reading[Payload]:
        pid = key.pid
        if (replaced := gone(NAME, self._proc, key)) is not None:
            return replaced
        environment = read_file(f"{self._proc}/{pid}/environ")
        named = {
            os.fsdecode(name): os.fsdecode(value)
            for name, _, value in (item.partition(b"=") for item in environment.split(b"\0"))
        }
        if named.get(ENABLED) != "1":
            return NOT_ENABLED
        places = self._places(pid, named)
        before_ns = time.time_ns() - 10**9  # the file system's clock is coarser than this one
        if (refusal := _ask(places.pipe)) is not None:
            return refusal
        written = self._written(places, before_ns)
        if written is None:
            return Missing(NAME, "timeout", f"no dump was complete within {WRITTEN_S:g} s")
        path, size = written
        return Known(KernelDump(file=path, size_bytes=size, kernels=self._kernels(path)))

    def _places(self, pid: int, named: Mapping[str, str]) -> _Places:
        own = (numbers_of(f"{self._proc}/{pid}/status", b"NSpid:") or [pid])[-1]
        pipe = _filled(named.get(PIPE) or DEFAULT_PIPE, own)
        file = named.get(FILE) or DEFAULT_FILE
        folder, _, name = file.rpartition("/")
        return _Places(self._seen(pid, pipe), self._seen(pid, folder or "."), _pattern(name, own))

    def _seen(self, pid: int, path: str) -> str:
        """Return a path of the process as it can be opened from here."""
        return f"{self._proc}/{pid}/root{path}" if path.startswith("/") else f"{self._proc}/{pid}/cwd/{path}"

    def _written(self, places: _Places, since_ns: int) -> tuple[str, int] | None:
        """Wait until a new dump has stopped growing."""
        until_s, size, since_s = time.monotonic() + WRITTEN_S, -1, time.monotonic()
        while time.monotonic() < until_s and not self._over:
            found = _newest(places, since_ns)
            now_s = time.monotonic()
            if found is None or found[1] != size:
                size, since_s = -1 if found is None else found[1], now_s
            elif size > 0 and now_s - since_s >= STILL_S:
                return found
            time.sleep(POLL_S)
        return None

    def _kernels(self, path: str) -> Reading[tuple[str, ...]]:
        program = shutil.which("cuda-gdb")
        if program is None:
            return NOT_INSTALLED
        self._child = _Debugger(program, path)
        said = self._child.said(NAMED_S)
        if said is None:
            return Missing(NAME, "timeout", f"cuda-gdb took longer than {NAMED_S:g} s and was killed")
        names = kernels_of(said)
        return Known(names) if names else Missing(NAME, "failed", "cuda-gdb named no kernel")


def _ask(pipe: str) -> Missing | None:
    """Write into the pipe, and never wait for a reader."""
    try:
        descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in {errno.ENXIO, errno.ENOENT}:
            return Missing(NAME, "failed", "nobody reads the pipe for dumps: CUDA was not started yet, or has ended")
        raise
    try:
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return Missing(NAME, "failed", "what should be the pipe for dumps is no pipe")
        os.write(descriptor, b"1")
    finally:
        os.close(descriptor)
    return None


def _newest(places: _Places, since_ns: int) -> tuple[str, int] | None:
    with os.scandir(places.directory) as entries:
        files = [(one, one.stat(follow_symlinks=False)) for one in entries if places.name.fullmatch(one.name)]
    fresh = [(seen.st_mtime_ns, one.path, seen.st_size) for one, seen in files if seen.st_mtime_ns >= since_ns]
    return max(fresh)[1:] if fresh else None


def _filled(template: str, pid: int) -> str:
    """Fill in a name.

    >>> _filled("/tmp/pipe.%p", 7)
    '/tmp/pipe.7'
    """
    return template.replace("%p", str(pid)).replace("%h", socket.gethostname())


def _pattern(template: str, pid: int) -> re.Pattern[str]:
    """Return what the name of a dump matches; a container's host name is not known here."""
    text = re.escape(template).replace("%p", str(pid)).replace("%h", r"[^/]+").replace("%t", r"\d+")
    return re.compile(text.replace("%e", r"[^/]+"))


def open_session(context: Context) -> Session:
    """Be ready to ask a launch."""
    return CoredumpSession(context)


def check(proc: Path) -> Reading[str]:
    """Say whether kernels of a dump can be named here."""
    del proc
    if shutil.which("cuda-gdb") is None:
        return NOT_INSTALLED
    return Known(f"the kernel that a card is stuck in, where the launch has {ENABLED}=1")


PROBE = Probe(
    name=NAME,
    title="the stuck kernel, with --cuda-coredump and at a hang only: the server may die of it",
    open=open_session,
    check=check,
    background=True,
    deadline_s=60.0,
    budget_ratio=1.0,
    on_request=True,
    reads=(ENABLED, PIPE, FILE, "cuda-gdb"),
)
