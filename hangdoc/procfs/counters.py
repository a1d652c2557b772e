"""Parse /proc/PID/io: what a process read and wrote in all."""

from __future__ import annotations

from hangdoc.model.thread import ProcessIo
from hangdoc.procfs.errors import refuse
from hangdoc.procfs.numbers import counter

LABELS = (b"rchar", b"wchar", b"syscr", b"syscw", b"read_bytes", b"write_bytes")


def parse_io(data: bytes) -> ProcessIo:
    r"""Read an io file.

    >>> parse_io(b"rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n").read_bytes
    5
    """
    lines = dict(line.split(b": ", 1) for line in data.splitlines() if b": " in line)
    try:
        rchar, wchar, reads, writes, read, written = (counter(lines[label].strip()) for label in LABELS)
    except (KeyError, ValueError):
        refuse("io", data)
    return ProcessIo(rchar, wchar, reads, writes, read, written)
