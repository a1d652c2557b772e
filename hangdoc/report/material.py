"""What a report over a recording is made of: the trace, its diagnosis, and what the diagnosis looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from msgspec.structs import replace

from hangdoc import discovery
from hangdoc.diagnosis import diagnose
from hangdoc.features.baseline import Baseline
from hangdoc.features.features import Features, features, mover_keys
from hangdoc.features.index import Index, Window, window_of
from hangdoc.features.slices import steady_window
from hangdoc.model.diagnosis import Diagnosis, TargetKind
from hangdoc.model.process import Process, ProcessKey
from hangdoc.report.words import rank_text
from hangdoc.trace.records import Trace
from hangdoc.trace.redact import redact

UNREDACTED = (
    "This report is not redacted: it has command lines, paths and names as they were. Think before you share it."
)


@dataclass(frozen=True, eq=False)
class Material:
    """One recording, diagnosed. seen: what was read in the window that was judged; whole: all of its rounds."""

    trace: Trace
    diagnosis: Diagnosis
    seen: Features
    index: Index
    whole: Window

    @property
    def is_redacted(self) -> bool:
        """Whether names and paths are tokens."""
        return self.trace.header.redaction == "tokens"

    @cached_property
    def processes(self) -> Mapping[ProcessKey, Process]:
        """Every process that was a member at any time, in the order of their keys; as it was seen last."""
        found = {process.key: process for shot in self.trace.snapshots for process in shot.processes}
        return dict(sorted(found.items()))

    @cached_property
    def names(self) -> Mapping[int, str]:
        """What a process is called, by its pid: "scheduler TP1"."""
        return {key.pid: rank_text(one.role, one.rank) for key, one in self.processes.items()}

    @cached_property
    def accused(self) -> frozenset[int]:
        """Pids of those who have to move."""
        return frozenset(one.pid for one in self.diagnosis.culprits if one.pid is not None)

    @property
    def accusation(self) -> str:
        """What is said of those who have to move, in two words."""
        return {"crashed": "failed", "slow-start": "at work"}.get(self.diagnosis.verdict, "has to move")

    def name(self, pid: int) -> str:
        """Return who a pid is, for a sentence."""
        return self.names.get(pid, "process outside the launch")


def material(trace: Trace, kind: TargetKind, *, keep_names: bool = False, baseline: Baseline | None = None) -> Material:
    """Return what a report is made of. Names become tokens, as in any trace, unless keep_names is set.

    A trace that is redacted already is redacted once more: an older hangdoc may have left what this one takes out.
    HangdocError as from diagnose.
    """
    if not keep_names:
        trace = redact(trace)
    diagnosis = diagnose(trace, kind, baseline)
    movers = mover_keys(trace.snapshots[-1].processes)
    window, steady = steady_window(trace, movers)
    engine = discovery.engine(trace.header.launch.engine)
    return Material(
        trace=trace,
        diagnosis=diagnosis,
        seen=features(trace, engine, window, steady=steady),
        index=Index(trace),
        whole=window_of(trace, 0, len(trace.snapshots) - 1),
    )


def prefix(trace: Trace, rounds: int) -> Trace:
    """Return the trace as it was after its first rounds."""
    return replace(trace, snapshots=trace.snapshots[:rounds])


def together(processes: Iterable[Process], most: int = 6) -> str:
    """Return several processes as people name them.

    >>> key = ProcessKey(1, 1)
    >>> ranks = [Process(key=key, ppid=0, role="scheduler", rank={"tp": number}) for number in (0, 1, 2, 5)]
    >>> together(ranks)
    'scheduler TP0-TP2, TP5'
    """
    by_role: dict[str, list[dict[str, int]]] = {}
    for one in processes:
        by_role.setdefault(one.role, []).append(one.rank)
    return ", ".join(_of_role(role, ranks, most) for role, ranks in by_role.items())


def _of_role(role: str, ranks: list[dict[str, int]], most: int) -> str:
    axes = {tuple(sorted(rank)) for rank in ranks}
    if len(axes) != 1 or not (names := next(iter(axes))):
        return rank_text(role, ranks[0]) if len(ranks) == 1 else f"{len(ranks)} x {rank_text(role, {})}"
    if len(names) == 1:
        shown = _spans(names[0].upper(), sorted(rank[names[0]] for rank in ranks))
    else:
        shown = [rank_text("", rank).strip() for rank in ranks]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return f"{rank_text(role, {})} {', '.join(shown[:most])}{more}"


def _spans(axis: str, numbers: list[int]) -> list[str]:
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return [f"{axis}{first}" if first == last else f"{axis}{first}-{axis}{last}" for first, last in spans]
