"""Open a file that the user named for reading, without ever waiting for it: a FIFO may have no writer."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


class NotRegularError(OSError):
    """It is a FIFO, a directory, a device or a socket."""

    def __init__(self) -> None:
        super().__init__(errno.EINVAL, "not a regular file")


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file; NotRegularError for anything else, OSError or ValueError when it cannot be opened."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegularError
    return os.fdopen(descriptor, "rb")
