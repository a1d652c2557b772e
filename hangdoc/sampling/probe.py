"""What a probe is: a module with a PROBE that opens a session on a launch and takes readings round by round."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar, cast, runtime_checkable

from hangdoc.model.process import Launch, Process
from hangdoc.model.reading import Reading
from hangdoc.model.snapshot import Sample
from hangdoc.model.stack import Stack

T = TypeVar("T")


@dataclass(frozen=True)
class Context:
    """What a probe may use.

    proc: the root of the proc file system (a directory of recorded files in tests);
    intern: takes a stack, returns its number in the trace's table;
    http_generate: the user allows a request that sends a token through the scheduler.
    """

    launch: Launch
    intern: Callable[[Stack], int]
    proc: Path = Path("/proc")
    http_generate: bool = False


class Shared:
    """What one probe read in a round and others may use: read by whoever asks first.

    Probes that run beside each other may both read it; no one waits for another.
    """

    def __init__(self) -> None:
        self._found: dict[Hashable, object] = {}

    def once(self, key: Hashable, read: Callable[[], T]) -> T:
        """Return what was read under a key in this round, or read it; an error is not kept."""
        if key not in self._found:
            self._found[key] = read()
        return cast("T", self._found[key])


@dataclass(frozen=True)
class Round:
    """One tick of the clock.

    thorough: read everything (the first and every later "deep" round, and the last one of an observation);
    otherwise only what is cheap. shared: what its probes have read so far for each other; calm: there is no reason to
    look closely, see Pace; deep: those readings are due that are taken seldom then.
    """

    index: int
    at_ns: int
    processes: tuple[Process, ...]
    thorough: bool
    calm: bool = False
    deep: bool = True
    shared: Shared = field(default_factory=Shared, compare=False, repr=False)


class Session(Protocol):
    """An open probe: it may hold descriptors and earlier readings."""

    def take(self, now: Round) -> Iterable[Sample]:
        """Read every process of the round once; a process that cannot be read gives a Missing sample."""

    def close(self) -> None:
        """Let go of everything held. Called once, also after a failure."""


@runtime_checkable
class RunsPrograms(Protocol):
    """A session that starts other programs."""

    @property
    def children_cpu_s(self) -> float:
        """CPU time of the programs that ended so far, all together."""

    def interrupt(self) -> None:
        """End the programs that a take is waiting for. Called from another thread, when an observation is over."""


@dataclass(frozen=True)
class Probe:
    """A probe's description and how to open it.

    every: taken in each Nth round; background: takes longer than a slice may, so it runs beside the clock and its
    samples join the round in which they arrive; deadline_s: an own limit for one take, after which the round goes on
    with Missing(timeout); budget_ratio: share of one core it may use on average, beyond which rounds are left out;
    allowance_s: CPU time it may use ahead of that, so that a first observation is complete.
    deep: taken seldom while the launch is known to be well;
    host: its samples are of the host, not of one process each; after_end: taken in the round that finds nobody, too;
    on_request: taken in no round, but when somebody asks for it.
    check: what can be read here, for `hangdoc probes`: Known(sentence) or Missing with a remedy.
    """

    name: str
    title: str
    open: Callable[[Context], Session]
    check: Callable[[Path], Reading[str]]
    every: int = 1
    background: bool = False
    deadline_s: float = 1.0
    budget_ratio: float = 0.02
    allowance_s: float = 1.0
    host: bool = False
    after_end: bool = False
    deep: bool = False
    on_request: bool = False
    reads: tuple[str, ...] = field(default=())
