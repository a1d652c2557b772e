"""Finds the C library of a process, if it is glibc, and tells its own waits from those of other locks."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from hangdoc.memory.elf import Exports, exports, loaded
from hangdoc.memory.image import Image

C_LIBRARY = re.compile(r"libc(?:\.so\.6|-2\.\d+\.so)")
"""glibc's file names, also those before 2.34."""
THREADS_LIBRARY = re.compile(r"libpthread(?:\.so\.0|-2\.\d+\.so)")
"""Where its locks were before 2.34."""
CALLER = "syscall"
"""The exported function that makes any system call: programs with locks of their own (Rust's std, absl) wait through
it, glibc's own locks never do."""


def find_glibc(image: Image, auxiliary: bytes) -> Exports | None:
    """Return what the C library exports; None where it is not glibc, or is a part of the program itself.

    auxiliary: /proc/PID/auxv.
    """
    for one in loaded(image, auxiliary):
        if C_LIBRARY.fullmatch(PurePosixPath(one.name).name) and (found := exports(image, one)):
            return found
    return None


def is_file_of_locks(path: str) -> bool:
    """Tell whether a mapped file is the one that has glibc's locks.

    >>> is_file_of_locks("/usr/lib/x86_64-linux-gnu/libc.so.6"), is_file_of_locks("/usr/bin/python3.11")
    (True, False)
    """
    name = PurePosixPath(path.removesuffix(" (deleted)")).name
    return bool(C_LIBRARY.fullmatch(name) or THREADS_LIBRARY.fullmatch(name))
