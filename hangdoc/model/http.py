"""What the launch's own HTTP server answers, and the counters that it publishes."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from hangdoc.model.reading import Reading

HttpPath: TypeAlias = Literal["/model_info", "/get_model_info", "/metrics", "/health_generate"]

HttpOutcome: TypeAlias = Literal["answered", "refused", "silent", "cut", "garbled", "too-long"]
"""answered: a whole answer, whatever its status; refused: nobody accepts; silent: no whole answer before the deadline;
cut: the connection ended before the answer did; garbled: no HTTP; too-long: more than hangdoc reads."""

Listener: TypeAlias = Literal["nobody", "member", "stranger"]
"""Who listens on the launch's port."""


class HttpReply(Struct, frozen=True, array_like=True):
    """One request. status: the HTTP status of an answer; took_s: until its end, or until it was given up."""

    path: HttpPath
    outcome: HttpOutcome
    status: int | None
    took_s: float


class ServerMetrics(Struct, frozen=True, kw_only=True):
    """What /metrics says, summed over labels; totals since the server's start but for running and waiting.

    tokens: every counter of tokens; it stands while requests run where the server counts them at their end only.
    """

    running: Reading[int]
    waiting: Reading[int]
    tokens: Reading[int]
    finished: Reading[int]


class Http(Struct, frozen=True, kw_only=True, tag="http"):
    """The http probe's reading of the launch. listener_pid: the member that listens, None when no member does."""

    port: int
    listener: Listener
    listener_pid: int | None = None
    replies: tuple[HttpReply, ...] = ()
    metrics: Reading[ServerMetrics]
