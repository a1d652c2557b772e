"""Parse /proc/PID/status: the tracer, the pids in each namespace, memory."""

from __future__ import annotations

from dataclasses import dataclass

from hangdoc.procfs.errors import refuse
from hangdoc.procfs.numbers import LARGEST, counter


@dataclass(frozen=True, slots=True)
class Status:
    """The lines of a status file that hangdoc uses.

    tracer_pid: 0 when nobody traces it; namespace_pids: from the reader's namespace inwards, one entry when the
    process is in no namespace of its own (or the kernel does not tell); rss_bytes: 0 for a zombie and a kernel
    thread, which have no memory; user_id: the effective one; caught_signals: a bit for each signal with a handler,
    that of signal 1 lowest; 0 where the kernel does not tell.
    """

    tracer_pid: int
    namespace_pids: tuple[int, ...]
    rss_bytes: int
    user_id: int
    caught_signals: int = 0


def parse_status(data: bytes) -> Status:
    r"""Read a status file.

    >>> parse_status(b"Name:\tx\nPid:\t70\nTracerPid:\t0\nUid:\t5\t6\t7\t8\nNSpid:\t70\t1\nVmRSS:\t    12 kB\n")
    Status(tracer_pid=0, namespace_pids=(70, 1), rss_bytes=12288, user_id=6, caught_signals=0)
    """
    lines = _labelled(data)
    try:
        pids = lines.get(b"NSpid") or lines[b"Pid"]
        return Status(
            tracer_pid=counter(lines[b"TracerPid"][0]),
            namespace_pids=tuple(counter(pid) for pid in pids),
            rss_bytes=counter(lines[b"VmRSS"][0]) * 1024 if b"VmRSS" in lines else 0,
            user_id=counter(lines[b"Uid"][1]),
            caught_signals=int(lines[b"SigCgt"][0], 16) & LARGEST if b"SigCgt" in lines else 0,
        )
    except (KeyError, IndexError, ValueError):
        refuse("status", data)


def _labelled(data: bytes) -> dict[bytes, list[bytes]]:
    # The kernel escapes newlines in the name, so a line is a line.
    split = (line.partition(b":") for line in data.split(b"\n"))
    return {label: rest.split() for label, colon, rest in split if colon}
