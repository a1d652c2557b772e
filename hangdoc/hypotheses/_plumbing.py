"""The libraries' waiting machinery: the files that nobody looks for when it is asked what a thread waits for."""

from __future__ import annotations

PLUMBING = (
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
