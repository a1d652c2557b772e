"""How the launch stands, as metrics for Prometheus; needs the extra hangdoc[metrics]."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from hangdoc import __version__
from hangdoc.errors import HangdocError
from hangdoc.model.diagnosis import Diagnosis, Grade, Verdict
from hangdoc.model.log import Phase
from hangdoc.model.reading import Missing
from hangdoc.model.snapshot import Snapshot

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

LOCAL = "127.0.0.1"
"""Where metrics are served unless the user names another address: titles of processes are nobody else's business."""

FAULTS = frozenset({"timeout", "failed"})
"""Missing readings that are errors; a denied one is the machine's setting, one that is not taken is a decision."""


@dataclass(frozen=True)
class Address:
    """Where to serve."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read PORT or HOST:PORT ("0.0.0.0:9400", "[::]:9400"); ValueError for anything else."""
        host, colon, port = text.rpartition(":")
        number = int(port)
        if not 0 < number <= 65535 or (colon and not host):
            raise ValueError(text)
        return cls(host.strip("[]") or LOCAL, number)


class Metrics:
    """Serves them while it is entered, in a thread of its own."""

    def __init__(self, address: Address) -> None:
        prometheus = _library()
        self.registry: CollectorRegistry = prometheus.CollectorRegistry()
        gauge = _maker(prometheus.Gauge, self.registry)
        self._verdict = gauge("hangdoc_verdict", "1 for the verdict that holds", "verdict", "grade")
        self._phase = gauge("hangdoc_phase", "1 for the phase of the least advanced rank", "phase")
        self._still = gauge("hangdoc_seconds_since_progress", "Time without progress, by the oldest proof")
        self._demand = gauge("hangdoc_demand_ratio", "Cores that a rank wants: running or waiting to", "role", "rank")
        self._left = gauge("hangdoc_limit_left_seconds", "Until a timer of the launch ends it", "limit")
        self._members = gauge("hangdoc_processes", "Processes of the launch")
        self._lost = gauge("hangdoc_lost_rounds", "Rounds that no file of --record has: the disk did not take them")
        self._last = gauge("hangdoc_last_round_timestamp_seconds", "When the launch was last looked at")
        counter = _maker(prometheus.Counter, self.registry)
        self._errors = counter("hangdoc_probe_errors", "Readings that failed or came too late", "probe", "reason")
        self._hangs = counter("hangdoc_hangs", "Hangs that began")
        gauge("hangdoc_info", "This hangdoc", "version").labels(__version__).set(1)
        self._server, self._thread = _serve(prometheus, address, self.registry)

    @property
    def port(self) -> int:
        """The port that is served, which the system chose where 0 was asked for."""
        return int(self._server.server_port)

    def round(self, snapshot: Snapshot) -> None:
        """Count one round."""
        self._last.set(snapshot.wall_ns / 1e9)
        self._members.set(len(snapshot.processes))
        for probe, reason in _faults(snapshot):
            self._errors.labels(probe, reason).inc()

    def lose(self, rounds: int) -> None:
        """Show how many rounds are in no file."""
        self._lost.set(rounds)

    def tell(self, diagnosis: Diagnosis) -> None:
        """Show how the launch stands."""
        self._verdict.clear()
        for verdict in get_args(Verdict):
            is_it = verdict == diagnosis.verdict
            grade: Grade = diagnosis.grade if is_it else "undetermined"
            self._verdict.labels(verdict, grade).set(is_it)
        for phase in get_args(Phase):
            self._phase.labels(phase).set(phase == diagnosis.phase)
        self._still.set(_number(diagnosis.no_progress_s))
        self._demand.clear()
        for one in diagnosis.processes:
            if one.rank:
                rank = ",".join(f"{axis}{number}" for axis, number in sorted(one.rank.items()))
                self._demand.labels(one.role, rank).set(_number(one.demand_ratio))
        self._left.clear()
        for limit in diagnosis.limits:
            self._left.labels(limit.name).set(_number(limit.left_s))

    def hang(self) -> None:
        """Count a hang that begins."""
        self._hangs.inc()

    def close(self) -> None:
        """Serve no longer."""
        self._server.shutdown()
        self._server.server_close()


def _library() -> Any:
    try:
        import prometheus_client  # noqa: PLC0415 - an extra
    except ImportError as error:
        message = "--metrics-port needs the package prometheus-client, which is not installed"
        raise HangdocError(message, 'install it: pipx install "hangdoc[metrics]"') from error
    return prometheus_client


def _maker(kind: Any, registry: Any) -> Any:
    return lambda name, text, *labels: kind(name, text, labels, registry=registry)


def _serve(prometheus: Any, address: Address, registry: Any) -> tuple[Any, Any]:
    try:
        return prometheus.start_http_server(address.port, address.host, registry)  # type: ignore[no-any-return]
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        message = f"metrics cannot be served on {address.host}:{address.port}: {reason}"
        raise HangdocError(message, "choose another port") from error


def _faults(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    for sample in snapshot.samples:
        if isinstance(sample.reading, Missing) and sample.reading.reason in FAULTS:
            yield sample.probe, sample.reading.reason


def _number(value: float | None) -> float:
    """Return NaN for what was not read: Prometheus has that for a value that is not known."""
    return float("nan") if value is None else value
