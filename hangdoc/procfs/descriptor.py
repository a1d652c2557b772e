"""Parse what the kernel tells about one descriptor: fdinfo and the target of its link."""

from __future__ import annotations

import os
from dataclasses import dataclass

from hangdoc.model.fd import FdKind
from hangdoc.procfs.errors import refuse
from hangdoc.procfs.numbers import counter

ACCESS = {os.O_RDONLY: "r", os.O_WRONLY: "w", os.O_RDWR: "rw"}
LARGEST_FLAGS = 2**31


@dataclass(frozen=True, slots=True)
class DescriptorInfo:
    """The lines every fdinfo file has. access: "r", "w" or "rw"."""

    position: int
    access: str
    append: bool


def parse_fdinfo(data: bytes) -> DescriptorInfo:
    r"""Read an fdinfo file.

    >>> parse_fdinfo(b"pos:\t62\nflags:\t0102001\nmnt_id:\t15\n")
    DescriptorInfo(position=62, access='w', append=True)
    """
    lines = dict(line.split(b":\t", 1) for line in data.splitlines() if b":\t" in line)
    try:
        position, flags = counter(lines[b"pos"].strip()), int(lines[b"flags"], 8)
    except (KeyError, ValueError):
        refuse("fdinfo", data)
    if not 0 <= flags < LARGEST_FLAGS:
        refuse("fdinfo", data)
    # Access 3 (no reading, no writing: for ioctl only) is shown as "r": it never writes.
    return DescriptorInfo(position, ACCESS.get(flags & os.O_ACCMODE, "r"), bool(flags & os.O_APPEND))


def kind_of(target: str) -> FdKind:
    """Say what a descriptor is from what its link points at; a path is taken for a file until stat says otherwise.

    >>> kind_of("pipe:[99]"), kind_of("/dev/pts/3"), kind_of("anon_inode:[eventpoll]"), kind_of("/dev/null")
    ('pipe', 'tty', 'anon', 'null')
    """
    if target.startswith(("pipe:", "socket:", "anon_inode:")):
        kinds: dict[str, FdKind] = {"pipe": "pipe", "socket": "socket", "anon_inode": "anon"}
        return kinds[target.partition(":")[0]]
    if target.startswith(("/dev/pts/", "/dev/tty", "/dev/console")):
        return "tty"
    if target == "/dev/null":
        return "null"
    return "other" if target.startswith("/dev/") else "file"


def looks_like_log(path: str) -> bool:
    """Say whether a file that is open for writing is worth following as a log.

    Rule: its name speaks of a log or of output, or one of its directories is called log or logs. It misses a log of
    any other name and takes "catalog.db" for one: both only cost a line of the report.

    >>> looks_like_log("/var/log/server/rank0"), looks_like_log("/data/nohup.out"), looks_like_log("/data/w.bin")
    (True, True, False)
    """
    directory, _, name = path.lower().rpartition("/")
    ending = name.removesuffix(" (deleted)").rpartition(".")[2]
    return (
        ending in {"log", "out", "err", "stdout", "stderr"}
        or "log" in name
        or bool({"log", "logs"} & set(directory.split("/")))
    )
