"""A stand-in for NCCL's RAS service: a program that listens where NCCL_RAS_ADDR says and answers as it is told.

Usage: server.py WAY [FILE]. It says "ready" on its standard output once it listens. {pid} in the file is its own pid,
{counts+N} becomes a count that grows by N with every question.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import socket
import sys
import threading
from pathlib import Path

LATER = b"SET FORMAT"


def lines(connection: socket.socket) -> object:
    kept = b""
    while part := connection.recv(4096):
        *whole, kept = (kept + part).split(b"\n")
        yield from whole


def answer(text: str, asked: int) -> bytes:
    text = text.replace("{pid}", str(os.getpid()))
    return re.sub(r"\{(\d+)\+(\d+)\}", lambda m: str(int(m[1]) + int(m[2]) * asked), text).encode()


def talk(connection: socket.socket, way: str, text: str, asked: int) -> None:
    if way == "silent":
        signal.pause()
    if way == "bye":
        return
    if way == "other":
        connection.sendall(b"SSH-2.0-OpenSSH\r\n")
        return
    if way == "endless-line":
        while True:
            connection.sendall(b"x" * 4096)
    for line in lines(connection):  # type: ignore[attr-defined]
        if line.startswith(b"CLIENT PROTOCOL"):
            connection.sendall(b"SERVER PROTOCOL 2\n")
        elif line.startswith(LATER) and way == "old":
            connection.sendall(b"ERROR: Unknown command " + line + b"\n")
        elif line == b"VERBOSE STATUS":
            status(connection, way, answer(text, asked))
            return
        else:
            connection.sendall(b"OK\n")


def status(connection: socket.socket, way: str, said: bytes) -> None:
    if way == "half":
        connection.sendall(said[:40])
        signal.pause()
    if way == "huge":
        while True:
            connection.sendall(b"{" * (1 << 16))
    if way != "nothing":
        connection.sendall(said)


def serve(connection: socket.socket, way: str, text: str, asked: int) -> None:
    with connection:
        try:
            talk(connection, way, text, asked)
        except OSError:
            return


def main() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    way, text = sys.argv[1], Path(sys.argv[2]).read_text() if len(sys.argv) > 2 else ""
    host, _, port = os.environ["NCCL_RAS_ADDR"].rpartition(":")
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind((host, int(port)))
        listening.listen()
        print("ready", flush=True)
        asked = 0
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=serve, args=(connection, way, text, asked), daemon=True).start()
            asked += 1


if __name__ == "__main__":
    main()
