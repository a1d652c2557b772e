"""Which frames only say how a thread waits: a library's waiting machinery."""

from __future__ import annotations

from hangdoc.features.frames import is_file
from hangdoc.model.stack import Frame

_PLUMBING = (
    "threading.py",
    "queue.py",
    "selectors.py",
    "socket.py",
    "ssl.py",
    "subprocess.py",
    "concurrent/futures/_base.py",
    "filelock/_api.py",
    "filelock/_core/_acquire.py",
    "filelock/_core/_lock.py",
    "multiprocessing/connection.py",
    "multiprocessing/popen_fork.py",
    "multiprocessing/process.py",
    "multiprocessing/queues.py",
    "multiprocessing/synchronize.py",
    "zmq/sugar/socket.py",
    "torch/distributed/c10d_logger.py",
    "torch/utils/file_baton.py",
    "tvm_ffi/utils/lockfile.py",
)
"""Files whose frames say how a thread waits, not for what."""


def is_plumbing(frame: Frame) -> bool:
    """Tell whether a frame belongs to a library's waiting machinery.

    >>> is_plumbing(Frame("Condition.wait", "lib/python3.11/threading.py", 327))
    True
    """
    return any(is_file(frame.file, library) for library in _PLUMBING)
