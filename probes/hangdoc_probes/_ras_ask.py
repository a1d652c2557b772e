"""One question to NCCL's RAS service, with a deadline that holds whatever the other side does.

The protocol is of lines (NCCL's src/ras/client_support.cc): each command gets a line, STATUS an answer until the end
of the connection. SET FORMAT exists since 2.28; an older service says ERROR and goes on, and answers as text.
"""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from dataclasses import dataclass

from hangdoc.model.ras import RasOutcome
from hangdoc_probes._http_get import left_s

MOST_BYTES = 16 << 20
"""Of one answer. A rank is some 500 bytes of JSON in each communicator; arbitrary above that."""

LINE_BYTES = 4096
"""Of the answer to one command. NCCL's own client reads lines of 1 KiB; arbitrary above that."""

COLLECT_S = 1
"""How long the process that is asked may wait for the others. NCCL's own default is 5 s."""

GREETING = b"SERVER PROTOCOL "


@dataclass(frozen=True)
class Said:
    """How a question ended, and the answer. json: the service was willing to answer so; took_s: until the end."""

    outcome: RasOutcome
    body: bytes = b""
    json: bool = False
    took_s: float = 0.0


class _GarbledError(Exception):
    """Who answers does not speak the protocol."""


class _TooLongError(Exception):
    """The answer is longer than hangdoc reads."""


def ask(connection: socket.socket, address: tuple[str, int], timeout_s: float, *, json: bool = True) -> Said:
    """Ask an unconnected socket's other end for the state of all communicators, and close it."""
    begun_s = time.monotonic()
    said = _asked(connection, address, begun_s + timeout_s, json=json)
    with suppress(OSError):
        connection.close()
    return Said(said.outcome, said.body, said.json, round(time.monotonic() - begun_s, 3))


def _asked(connection: socket.socket, address: tuple[str, int], deadline_s: float, *, json: bool) -> Said:
    try:
        return _conversation(connection, address, deadline_s, json=json)
    except TimeoutError:
        return Said("silent")
    except ConnectionRefusedError:
        return Said("refused")
    except OSError:
        return Said("cut")
    except _GarbledError:
        return Said("garbled")
    except _TooLongError:
        return Said("too-long")


def _conversation(connection: socket.socket, address: tuple[str, int], deadline_s: float, *, json: bool) -> Said:
    connection.settimeout(left_s(deadline_s))
    connection.connect(address)
    line = _Line(connection, deadline_s)
    if not line.answer(b"CLIENT PROTOCOL 2").startswith(GREETING):
        raise _GarbledError
    line.answer(b"TIMEOUT %d" % COLLECT_S)
    as_json = json and line.answer(b"SET FORMAT json") == b"OK"
    line.say(b"VERBOSE STATUS")
    body = line.rest()
    if not body.strip():
        return Said("cut")
    return Said("answered", body, as_json)


class _Line:
    """A connection that is spoken to line by line."""

    def __init__(self, connection: socket.socket, deadline_s: float) -> None:
        self._connection = connection
        self._deadline_s = deadline_s
        self._read = b""

    def say(self, command: bytes) -> None:
        self._connection.settimeout(left_s(self._deadline_s))
        self._connection.sendall(command + b"\n")

    def answer(self, command: bytes) -> bytes:
        """Give a command and return the line that answers it."""
        self.say(command)
        while b"\n" not in self._read:
            if len(self._read) > LINE_BYTES:
                raise _GarbledError
            if not (part := self._part()):
                raise ConnectionResetError
            self._read += part
        line, _, self._read = self._read.partition(b"\n")
        return line.strip()

    def rest(self) -> bytes:
        """Return what comes until the other side ends the connection."""
        parts, size = [self._read], len(self._read)
        while part := self._part():
            parts.append(part)
            size += len(part)
            if size > MOST_BYTES:
                raise _TooLongError
        return b"".join(parts)

    def _part(self) -> bytes:
        self._connection.settimeout(left_s(self._deadline_s))
        return self._connection.recv(1 << 16)
