"""A launch that stands as two ranks do on a card: rank 0 has launched a collective, rank 1 sleeps and never comes.

Run as sglang.launch_server. Rank 0 answers as NCCL's RAS does, with the counts that were measured.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path

from tests.fake_ras.answers import as_json

ARG_START, ARG_END, PR_SET_PDEATHSIG, PR_SET_NAME = 45, 46, 1, 15


def rename(title: str) -> None:
    """As setproctitle does: over the own command line."""
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    start, end = int(fields[ARG_START]), int(fields[ARG_END])
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, title.encode(), len(title))
    ctypes.CDLL(None).prctl(PR_SET_NAME, title.encode())


def fork(title: str, body: object) -> int:
    pid = os.fork()
    if pid == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        rename(title)
        body()  # type: ignore[operator]
    return pid


def answer(pids: tuple[int, int]) -> bytes:
    return as_json((0, pids[0], 17), (1, pids[1], 7)).encode()


def serve(listening: socket.socket, said: bytes) -> None:
    while True:
        connection, _ = listening.accept()
        with connection, connection.makefile("rb") as lines:
            for line in lines:
                if line.startswith(b"VERBOSE"):
                    connection.sendall(said)
                    break
                connection.sendall(b"SERVER PROTOCOL 2\n" if line.startswith(b"CLIENT") else b"OK\n")


def launched(other: int, listening: socket.socket) -> None:
    said = answer((os.getpid(), other))
    threading.Thread(target=serve, args=(listening, said), daemon=True).start()
    signal.pause()


def astray() -> None:
    time.sleep(3600)


def main() -> None:
    listening = socket.create_server(
        ("127.0.0.1", int(os.environ["NCCL_RAS_ADDR"].rpartition(":")[2])), reuse_port=True
    )
    other = fork("sglang::scheduler_TP1", astray)
    fork("sglang::scheduler_TP0", lambda: launched(other, listening))
    listening.close()
    print(other, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
