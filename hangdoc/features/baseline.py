"""Good starts to compare with: what earlier launches took from step to step, or else what is usual anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hangdoc.features.clock import seconds_between
from hangdoc.features.startup import Reached, Start
from hangdoc.model.reading import Known
from hangdoc.trace.records import Trace
from hangdoc.trace.tokens import tokens_in

SIZES = ("model_path", "tp_size", "tensor_parallel_size", "pp_size", "dp_size", "nnodes")
"""Settings on which it depends how long the steps of a start take."""


@dataclass(frozen=True)
class GoodStart:
    """A start that became ready.

    at_s: seconds from its first step to each one, by name; lines: it wrote; version: the engine's, "" where unknown;
    settings: what its size depends on, by name; names: of all lines of it that a table knows.
    """

    name: str
    lines: int
    at_s: dict[str, float]
    version: str = ""
    engine: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    names: frozenset[str] = frozenset()

    def unlike(self, settings: Mapping[str, str]) -> tuple[str, ...]:
        """Return in which settings it differs from a launch's; those that one of both does not tell are left out."""
        return tuple(
            name for name in SIZES if name in settings and self.settings.get(name, settings[name]) != settings[name]
        )

    def gap_s(self, step: str) -> float | None:
        """Return the seconds from a step to the next one; None when it has no such step, or it is the last."""
        names = list(self.at_s)
        following = names[names.index(step) + 1 :] if step in names else []
        return self.at_s[following[0]] - self.at_s[step] if following else None


@dataclass(frozen=True)
class Baseline:
    """Good starts of the same server. other: the versions that they are of, where none is of the patient's.

    unlike: the settings in which they differ from the patient, where none has all of its settings.
    """

    starts: tuple[GoodStart, ...]
    other: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()

    def of(self, engine: str, settings: Mapping[str, str]) -> Baseline | None:
        """Return the good starts of an engine, of equal settings where there are some; None where none is of it."""
        found = tuple(start for start in self.starts if start.engine == engine)
        if not found:
            return None
        same = tuple(start for start in found if not start.unlike(settings))
        differing = {name for start in found for name in start.unlike(settings)}
        return Baseline(same or found, self.other, () if same else tuple(sorted(differing)))

    def knows(self, name: str) -> bool:
        """Tell whether a good start has a line of this name."""
        return any(name in start.names for start in self.starts)

    def like(self, version: str) -> Baseline:
        """Return the good starts of a version; all of them where none is of it, or it is not known."""
        same = tuple(start for start in self.starts if start.version == version)
        if not version or same:
            return replace(self, starts=same or self.starts)
        return replace(self, other=tuple(sorted({start.version for start in self.starts if start.version})))

    def gaps_s(self, step: str) -> tuple[float, float] | None:
        """Return the shortest and the longest time that good starts took from a step to the next; None without any."""
        gaps = [gap for start in self.starts if (gap := start.gap_s(step)) is not None]
        return (min(gaps), max(gaps)) if gaps else None

    def longest_gap_s(self, step: str) -> float | None:
        """Return the longest time that a good start took from a step to the next; None when none has it."""
        gaps = self.gaps_s(step)
        return None if gaps is None else gaps[1]

    def reached_at_s(self, step: str) -> tuple[float, float] | None:
        """Return the earliest and the latest time at which good starts reached a step."""
        times = [start.at_s[step] for start in self.starts if step in start.at_s]
        return (min(times), max(times)) if times else None


def good_start(name: str, lines: int, start: Start) -> GoodStart | None:
    """Return a start as one to compare with; None when it never became ready, or its lines have no time."""
    if start.last is None or start.last.step.name != "ready":
        return None
    times = {one.step.name: elapsed_s(start, one) for one in start.reached}
    known = {step: at_s for step, at_s in times.items() if at_s is not None}
    return GoodStart(name, lines, known) if len(known) > 1 else None


def comparable(trace: Trace) -> dict[str, str]:
    """Return the settings of a launch that may be compared: names that are redacted may not."""
    return {name: text for name, text in trace.header.launch.settings.items() if not tokens_in(text)}


def elapsed_s(start: Start, step: Reached) -> float | None:
    """Return the seconds from the first step of a log to this one; None where a line has no time."""
    first = next((one.first.stamp for one in start.reached if one.first.stamp), "")
    reading = seconds_between(first, step.first.stamp)
    return reading.value if isinstance(reading, Known) else None


TYPICAL_S: dict[str, tuple[float, float, str]] = {
    "server-args": (5, 120, "imports of the ranks: 9 s on two quiet cores, 22 s on an H200, 114 s on a full machine"),
    "rendezvous-begin": (0.05, 300, "0.04 s on one GPU, 0.2 s on two ranks; peers of other nodes come within minutes"),
    "load-weight-begin": (0.1, 3600, "0.3 s for a tiny model; 31 min for 163 shards over a network (public report)"),
    "load-weight-end": (0.03, 3600, "a healthy start was silent for 60 min after its last shard (public report)"),
    "kv-cache-allocated": (0.01, 60, "under 1 s where it was measured; 60 s is arbitrary"),
    "memory-pool-end": (0.1, 1800, "0.2 s, or 10 to 20 min where kernels are compiled first (DeepGEMM's own words)"),
    "capture-begin": (5, 900, "7.8 s for 36 sizes on an H200; a healthy one took 595 s (public report)"),
    "capture-end": (0.01, 60, "under 1 s where it was measured; 60 s is arbitrary"),
    "ready-summary": (0.03, 600, "until the web server listens; the server's own limit for its warm-up is 600 s"),
    "http-listening": (0.5, 600, "1.2 s on an H200; the server's own limit for its warm-up request is 600 s"),
}
"""Seconds from a step to the next, least and most in good starts, with the source. Wide on purpose: models, disks and
caches differ by more than a hundred times. --baseline gives narrow ones."""
