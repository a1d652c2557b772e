"""Whether the launch's HTTP server answers, and what it counts: /model_info and /metrics, with a deadline of its own.

/health and /health_generate send a token through the scheduler and can leave requests behind in a server that hangs:
the latter is asked only when the user says so, the former never.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from pathlib import Path

from hangdoc.model.http import Http, HttpPath, HttpReply, Listener, ServerMetrics
from hangdoc.model.process import Process
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Payload, Sample
from hangdoc.sampling.probe import Context, Probe, Round, Session
from hangdoc_probes._http_get import Got, get
from hangdoc_probes._metrics import COUNTERS, NAME, parse_metrics
from hangdoc_probes._network import host_of, socket_at, sockets_of, tcp_table
from hangdoc_probes._reading import missing

EVERY = 5
"""Rounds from one question to the next: a page of metrics costs the server some milliseconds of its event loop."""

ANSWER_S = 2.0
"""For one answer. Both paths are answered without the scheduler, in milliseconds; arbitrary above that."""

QUIET_S = 10.0
"""How long a server that did not answer is left alone: each question waits in its queue. Arbitrary."""

INFO_PATHS: tuple[HttpPath, ...] = ("/model_info", "/get_model_info")
"""SGLang's, newer first: until 0.5.7 only the second exists."""

NOT_FOUND = 404
ELSEWHERE = "run hangdoc as root on the host, or in the container of the launch, to ask its HTTP server"


class HttpSession:
    """Asks the member that listens on the launch's port."""

    def __init__(self, context: Context) -> None:
        self._proc = context.proc
        self._engine = context.launch.engine
        self._port = _port(context)
        self._generate = context.http_generate
        self._info = list(INFO_PATHS) if self._engine == "sglang" else []
        self._has_metrics = True
        self._ask_again_s = 0.0
        self._owners: dict[int, int] = {}

    def take(self, now: Round) -> Iterable[Sample]:
        """Ask once; a launch that has no known port, or was silent a moment ago, is not asked."""
        if self._port is None or not now.processes or time.monotonic() < self._ask_again_s:
            return
        taken_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        try:
            reading = self._read(now.processes, self._port)
        except OSError as error:
            reading = missing(NAME, error)
        yield Sample(probe=NAME, process=None, taken_ns=taken_ns, reading=reading)

    def close(self) -> None:
        """Nothing is held."""

    def _read(self, members: tuple[Process, ...], port: int) -> Reading[Payload]:
        speaker = next((one.key.pid for one in members if one.role == "launcher"), members[0].key.pid)
        listening = [one for one in tcp_table(self._proc, speaker) if one.listens and one.local_port == port]
        if not listening:
            return Known(_unanswered(port, "nobody", "nobody listens on its port"))
        owner = self._owner(members, {one.inode for one in listening})
        if owner is None:
            return Known(_unanswered(port, "stranger", "its port belongs to another program"))
        if (refusal := self._barred(speaker)) is not None:
            return refusal
        return Known(self._asked(port, owner, speaker, host_of(listening[0])))

    def _owner(self, members: tuple[Process, ...], inodes: set[int]) -> int | None:
        """Return the member that holds one of these sockets, those that usually do first.

        PermissionError when none that could be looked at does, and some could not.
        """
        present = {member.key.pid for member in members}
        for inode in inodes:
            if self._owners.get(inode) in present:
                return self._owners[inode]
        refused: PermissionError | None = None
        for member in sorted(members, key=lambda one: one.role not in {"launcher", "tokenizer", "router"}):
            try:
                held = inodes & set(sockets_of(self._proc, member.key.pid))
            except PermissionError as error:
                refused, held = error, set()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended
            if held:
                self._owners = dict.fromkeys(held, member.key.pid)
                return member.key.pid
        if refused is not None:
            raise refused
        return None

    def _barred(self, pid: int) -> Missing | None:
        try:
            socket_at(self._proc, pid, socket.AF_INET).close()
        except PermissionError:
            return Missing(NAME, "denied", "its network namespace cannot be entered", ELSEWHERE)
        return None

    def _asked(self, port: int, owner: int, speaker: int, host: str) -> Http:
        replies: list[HttpReply] = []

        def ask(path: HttpPath) -> Got:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            got = get(socket_at(self._proc, speaker, family), (host, port), path, ANSWER_S)
            replies.append(got.reply)
            return got

        while self._info and ask(self._info[0]).reply.status == NOT_FOUND:
            self._info.pop(0)
        metrics = self._metrics(ask("/metrics")) if self._has_metrics and not _gave_up(replies) else _NO_METRICS
        if self._generate and not _gave_up(replies):
            ask("/health_generate")
        if _gave_up(replies):
            self._ask_again_s = time.monotonic() + QUIET_S
        return Http(port=port, listener="member", listener_pid=owner, replies=tuple(replies), metrics=metrics)

    def _metrics(self, got: Got) -> Reading[ServerMetrics]:
        if got.reply.status == NOT_FOUND:
            self._has_metrics = False
            return _NO_METRICS
        if got.reply.outcome != "answered" or got.reply.status != 200:
            return Missing(NAME, "failed", "it did not answer with its metrics")
        return Known(parse_metrics(got.body, self._engine))


_NO_METRICS = Missing(NAME, "unsupported", "the server has no metrics: SGLang has them with --enable-metrics")


def _gave_up(replies: list[HttpReply]) -> bool:
    return any(reply.outcome != "answered" for reply in replies)


def _unanswered(port: int, listener: Listener, why: str) -> Http:
    return Http(port=port, listener=listener, metrics=Missing(NAME, "unsupported", why))


def _port(context: Context) -> int | None:
    """Return the port of an engine that is known to serve HTTP on it."""
    text = context.launch.settings.get("port", "")
    if context.launch.engine not in COUNTERS or not text.isdecimal() or not 0 < int(text) < 1 << 16:
        return None
    return int(text)


def open_session(context: Context) -> Session:
    """Start asking a launch."""
    return HttpSession(context)


def check(proc: Path) -> Reading[str]:
    """Say what is asked."""
    del proc
    return Known("/model_info and /metrics of a server that listens here; in another network namespace only as root")


PROBE = Probe(
    name=NAME,
    title="whether the HTTP server answers, its requests and tokens",
    open=open_session,
    check=check,
    every=EVERY,
    background=True,
    deep=True,
    deadline_s=4 * ANSWER_S,
    host=True,
    reads=("GET /model_info", "GET /get_model_info", "GET /metrics", "/proc/PID/net/tcp", "/proc/PID/net/tcp6"),
)
