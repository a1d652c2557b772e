"""Read files below a proc root, and say why one could not be read."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from hangdoc.errors import HangdocError
from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Payload, Sample
from hangdoc.procfs.stat import parse_stat
from hangdoc.sampling.probe import Round

CAP_SYS_PTRACE = 1 << 19
CHUNK_BYTES = 1 << 16

DENIED = frozenset({errno.EACCES, errno.EPERM})
GONE = frozenset({errno.ENOENT, errno.ESRCH})


def read(path: str) -> bytes:
    """Read a whole file of one record (stat, status, auxv ...), not one of many lines such as maps.

    A permission may show at the read only, when the opener has fewer capabilities.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        data = os.read(descriptor, CHUNK_BYTES)
        if len(data) < 4096:  # a page is the least that the kernel fills before it stops
            return data
        parts = [data]
        while part := os.read(descriptor, CHUNK_BYTES):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def read_table(path: str) -> bytes:
    """Read a file of many lines that the kernel writes one by one: each read ends before the line that does not fit.

    So a read of less than a page is not the last (fs/seq_file.c, seq_read_iter).
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return b"".join(iter(lambda: os.read(descriptor, CHUNK_BYTES), b""))
    finally:
        os.close(descriptor)


def gone(probe: str, proc: Path, key: ProcessKey) -> Missing | None:
    """Say that a pid is another process's by now; None while it is this one's. OSError when nobody has it."""
    if parse_stat(read(f"{proc}/{key.pid}/stat")).start_ticks == key.start_ticks:
        return None
    return Missing(probe, "gone", "the process has ended; its pid was given to another")


def program_file(proc: Path, pid: int) -> str:
    """Return the path of the file that a process runs, also of one that was deleted since."""
    return os.readlink(f"{proc}/{pid}/exe").removesuffix(" (deleted)")  # noqa: PTH115  a path object costs more


def samples(probe: str, now: Round, take: Callable[[Process], Reading[Payload]]) -> Iterator[Sample]:
    """Read every process of the round, one after the other; what cannot be read becomes Missing."""
    for process in now.processes:
        taken_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        yield Sample(
            probe=probe,
            process=process.key,
            taken_ns=taken_ns,
            reading=attempt(probe, lambda: take(process)),  # noqa: B023
        )


def attempt(probe: str, take: Callable[[], Reading[Payload]]) -> Reading[Payload]:
    """Take one reading; the errors that a process can cause become Missing."""
    try:
        return take()
    except OSError as error:
        return missing(probe, error)
    except HangdocError as error:
        return Missing(probe, "failed", error.message, error.remedy)


def known(probe: str, take: Callable[[], Payload]) -> Reading[Payload]:
    """Take one reading that is Known unless it raises."""
    return attempt(probe, lambda: Known(take()))


def missing(probe: str, error: OSError, *, attach: bool = False) -> Missing:
    """Translate an error of the kernel.

    attach: the reading needs the right to trace the process, which Yama can take away even from its own user.
    """
    path = str(error.filename or "")
    what = f"{path}: {os.strerror(error.errno or 0)}".removeprefix(": ")
    if error.errno in DENIED:
        return Missing(probe, "denied", what, permission_remedy(attach=attach))
    if error.errno in GONE:
        if error.errno == errno.ENOENT and path and Path(path).parent.exists():
            return Missing(probe, "unsupported", f"{path}: this kernel has no such file", "")
        return Missing(probe, "gone", "the process has ended", "")
    return Missing(probe, "failed", what, "")


@cache
def permission_remedy(*, attach: bool, proc: Path = Path("/proc")) -> str:
    """Say what would lift a refusal, given what hangdoc itself may do."""
    if os.geteuid() == 0:
        if capabilities(proc) & CAP_SYS_PTRACE:
            return "a security module or the namespace refuses: run hangdoc on the host, or in the target's container"
        return "give hangdoc's container the right to look: --cap-add SYS_PTRACE (or run hangdoc on the host as root)"
    if attach and ptrace_scope(proc) > 0:
        return "run hangdoc as root (sudo), or allow it until the next boot: sudo sysctl kernel.yama.ptrace_scope=0"
    return "run hangdoc as root (sudo), or as the user who started the launch"


def capabilities(proc: Path) -> int:
    """Return hangdoc's own effective capabilities as the kernel's bit mask."""
    lines = read(f"{proc}/self/status").split(b"\n")
    return next((int(line.split()[1], 16) for line in lines if line.startswith(b"CapEff:")), 0)


def ptrace_scope(proc: Path) -> int:
    """Return Yama's ptrace_scope; 0 where there is no Yama."""
    try:
        return int(read(f"{proc}/sys/kernel/yama/ptrace_scope"))
    except (OSError, ValueError):
        return 0


def numbered(directory: str) -> list[int]:
    """List a directory whose entries are numbers (task/, fd/), sorted."""
    return sorted(map(int, os.listdir(directory)))  # noqa: PTH208  a path object for each thread costs more than it
