"""One GET with a deadline that holds whatever the other side does: it may be silent, endless or no HTTP at all."""

from __future__ import annotations

import http.client
import io
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

from hangdoc import __version__
from hangdoc.model.http import HttpOutcome, HttpPath, HttpReply

MOST_BYTES = 4 << 20
"""Of one body. A page of metrics has some 100 KiB; arbitrary above that."""


@dataclass(frozen=True)
class Got:
    """A reply, and the body of one that was answered."""

    reply: HttpReply
    body: bytes = b""


class _DeadlineReader(io.RawIOBase):
    """Reads a socket until a moment; a timeout of the socket alone would start anew with every byte that drips in."""

    def __init__(self, connection: socket.socket, deadline_s: float) -> None:
        self._connection = connection
        self._deadline_s = deadline_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        self._connection.settimeout(left_s(self._deadline_s))
        return self._connection.recv_into(cast("memoryview", buffer))


class _Connection:
    """What http.client asks of a socket."""

    def __init__(self, connection: socket.socket, deadline_s: float) -> None:
        self._reader = _DeadlineReader(connection, deadline_s)

    def makefile(self, mode: str) -> io.BufferedReader:
        assert mode == "rb"
        return io.BufferedReader(self._reader)


def get(connection: socket.socket, address: tuple[str, int], path: HttpPath, timeout_s: float) -> Got:
    """Ask an unconnected socket's other end for a path, and close it; never takes longer than timeout_s.

    Speaks to the address itself: no proxy, no name, no redirect, no credentials.
    """
    begun_s = time.monotonic()
    outcome, status, body = _exchange(connection, address, path, begun_s + timeout_s)
    with suppress(OSError):
        connection.close()
    return Got(HttpReply(path, outcome, status, round(time.monotonic() - begun_s, 3)), body)


def _exchange(
    connection: socket.socket, address: tuple[str, int], path: HttpPath, deadline_s: float
) -> tuple[HttpOutcome, int | None, bytes]:
    try:
        connection.settimeout(left_s(deadline_s))
        connection.connect(address)
        connection.settimeout(left_s(deadline_s))
        connection.sendall(_request(address, path))
        response = http.client.HTTPResponse(cast("socket.socket", _Connection(connection, deadline_s)), method="GET")
        response.begin()
        body = response.read(MOST_BYTES + 1)
    except TimeoutError:
        return "silent", None, b""
    except ConnectionRefusedError:
        return "refused", None, b""
    except (OSError, http.client.IncompleteRead, http.client.RemoteDisconnected):
        return "cut", None, b""
    except (http.client.HTTPException, ValueError):
        return "garbled", None, b""
    if len(body) > MOST_BYTES:
        return "too-long", response.status, b""
    # A length that is left over was promised and did not come.
    return ("cut", response.status, b"") if response.length else ("answered", response.status, body)


def _request(address: tuple[str, int], path: HttpPath) -> bytes:
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    lines = (
        f"GET {path} HTTP/1.1",
        f"Host: {host}:{address[1]}",
        f"User-Agent: hangdoc/{__version__}",
        "Accept: text/plain, application/json",
        "Connection: close",
    )
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode("ascii")


def left_s(deadline_s: float) -> float:
    """Return the time left; TimeoutError when there is none."""
    left = deadline_s - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
