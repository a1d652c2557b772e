"""What a waiting thread waits for beyond its process: the other end of a descriptor, a child, a file lock."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Reading

Through: TypeAlias = Literal[
    "pipe", "socket", "tcp", "child", "file-lock", "eventfd", "zmq", "poll", "tracer", "signal", "freezer"
]


class LinkEnd(Struct, frozen=True, array_like=True):
    """Somebody at the other end. member: of the launch; process: its identity, inside or outside the launch."""

    process: ProcessKey
    member: bool
    fd: int | None = None


class Link(Struct, frozen=True, kw_only=True):
    """One thread of a process that waits, and who could end the wait.

    ends: every process that could (for a pipe: the holders of the other end); empty when nobody could;
    weak: the wait looks the same when nothing is wrong (an idle zmq socket).
    """

    tid: int
    through: Through
    detail: str
    ends: Reading[tuple[LinkEnd, ...]]
    weak: bool = False


class SocketFlow(Struct, frozen=True, array_like=True):
    """Totals of one TCP connection of a process (INET_DIAG tcp_info): recv and send are in no /proc counter."""

    fd: int
    received_bytes: int
    acked_bytes: int


class Links(Struct, frozen=True, tag="links"):
    """The links probe's reading of one process."""

    links: tuple[Link, ...]
    tcp: Reading[tuple[SocketFlow, ...]]
