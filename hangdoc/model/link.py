"""What a waiting thread waits for beyond its process: the other end of a descriptor, a child, a file lock."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Missing, Reading

Through: TypeAlias = Literal[
    "pipe", "socket", "tcp", "child", "file-lock", "eventfd", "zmq", "poll", "tracer", "signal", "freezer", "lease"
]


class LinkEnd(Struct, frozen=True, array_like=True):
    """Somebody at the other end. member: of the launch; process: its identity, inside or outside the launch.

    inherited: it holds the end only because a fork copied it; command: the kernel's short name of the process;
    tree_ticks: CPU time of it and all its descendants so far, in clock ticks, of whoever holds a file lock.
    stopped, awaited_pid: of one outside the launch, that a signal has stopped it, and whose end its only thread waits
    for; None when it waits for nobody's, or for anybody's. rests: of one outside, that a thread of it runs, sleeps or
    is in a wait that ends by itself; None of a member, when that was not to be read, and in an older trace.
    """

    process: ProcessKey
    member: bool
    fd: int | None = None
    inherited: bool = False
    command: str = ""
    tree_ticks: int | None = None
    stopped: bool = False
    awaited_pid: int | None = None
    rests: bool | None = None


class Link(Struct, frozen=True, kw_only=True):
    """One thread of a process that waits, and who could end the wait.

    ends: every process that could (for a pipe: the holders of the other end), those that inherited it last; empty when
    nobody could; weak: the wait looks the same when nothing is wrong (an idle zmq socket, a server without requests).
    timeout_s: of a wait on a socket, after how long the socket itself ends it (SO_RCVTIMEO, SO_SNDTIMEO), 0 for never;
    Missing for any other wait, and in a trace that is older than this field.
    """

    tid: int
    through: Through
    detail: str
    ends: Reading[tuple[LinkEnd, ...]]
    weak: bool = False
    timeout_s: Reading[float] = Missing("links", "not-taken")


class SocketFlow(Struct, frozen=True, array_like=True):
    """Totals of one TCP connection of a process (INET_DIAG tcp_info): recv and send are in no /proc counter.

    segments: that carried data, either way; 0 where the kernel (before 4.6) does not count them.
    """

    fd: int
    received_bytes: int
    acked_bytes: int
    segments: int = 0


class Links(Struct, frozen=True, tag="links"):
    """The links probe's reading of one process.

    thorough: its threads were looked at; otherwise links is empty because nobody looked, and tcp has only the
    connections that the last thorough reading knew; unread: why its system calls could not be read, so that links has
    only what anybody may see (a stop, a tracer, a freezer).
    """

    links: tuple[Link, ...]
    tcp: Reading[tuple[SocketFlow, ...]]
    thorough: bool = True
    unread: Missing | None = None
