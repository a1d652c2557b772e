"""A reading that is taken away never makes anything more certain."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hangdoc.criteria import RANK
from hangdoc.diagnosis import diagnose
from hangdoc.model.diagnosis import Diagnosis
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Missing
from hangdoc.model.snapshot import Sample, Snapshot
from hangdoc.trace.reader import read
from hangdoc.trace.records import Trace

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.hangtrace"))
Group = tuple[str, ProcessKey | None]


@lru_cache
def trace_of(golden: Path) -> Trace:
    return read(golden)


@lru_cache
def diagnosis_of(golden: Path) -> Diagnosis:
    return diagnose(trace_of(golden), "trace")


def groups_of(trace: Trace) -> list[Group]:
    found = {(sample.probe, sample.process) for snapshot in trace.snapshots for sample in snapshot.samples}
    return sorted(found, key=lambda group: (group[0], group[1] or ProcessKey(0, 0)))


def without(trace: Trace, groups: frozenset[Group]) -> Trace:
    """Return the trace as if these probes had been refused on these processes."""

    def taken_away(sample: Sample) -> Sample:
        if (sample.probe, sample.process) not in groups:
            return sample
        return msgspec.structs.replace(sample, reading=Missing(sample.probe, "denied"))

    def thinner(snapshot: Snapshot) -> Snapshot:
        return msgspec.structs.replace(snapshot, samples=tuple(taken_away(sample) for sample in snapshot.samples))

    return msgspec.structs.replace(trace, snapshots=tuple(thinner(snapshot) for snapshot in trace.snapshots))


def without_samples(trace: Trace, numbers: frozenset[int]) -> Trace:
    """Return the trace without these samples, counted over all rounds: not even a refusal is there."""
    number = 0
    snapshots = []
    for snapshot in trace.snapshots:
        kept = tuple(one for at, one in enumerate(snapshot.samples, number) if at not in numbers)
        number += len(snapshot.samples)
        snapshots.append(msgspec.structs.replace(snapshot, samples=kept))
    return msgspec.structs.replace(trace, snapshots=tuple(snapshots))


def check(before: Diagnosis, after: Diagnosis, what: str) -> None:
    grades = {finding.id: finding.grade for finding in before.hypotheses}
    for finding in after.hypotheses:
        was = grades[finding.id]
        weaker = RANK[finding.grade] <= RANK[was] or (was, finding.grade) == ("ruled-out", "undetermined")
        assert weaker, f"without {what}, {finding.name} rose from {was} to {finding.grade}"
    moving = {one.verdict for one in before.hypotheses if one.verdict in PEACE and RANK[one.grade] >= RANK["likely"]}
    fair = {before.verdict, "undetermined"} | moving
    assert after.verdict in fair, f"without {what}, {before.verdict} became {after.verdict}"


PEACE = frozenset({"slow-start", "healthy"})
"""What may be left when the reading that shows a hang is gone, if it was said all along that something moves."""


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.stem)
def test_one_reading_less(golden: Path) -> None:
    """Without any one probe of any one process, no grade rises; the verdict is the same or undetermined."""
    trace = trace_of(golden)
    for group in groups_of(trace):
        check(diagnosis_of(golden), diagnose(without(trace, frozenset({group})), "trace"), str(group))


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.stem)
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_several_readings_less(golden: Path, data: st.DataObject) -> None:
    """Without any set of readings, no grade rises; the verdict is the same or undetermined."""
    trace = trace_of(golden)
    groups = data.draw(st.frozensets(st.sampled_from(groups_of(trace)), min_size=2))
    check(diagnosis_of(golden), diagnose(without(trace, groups), "trace"), str(groups))


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.stem)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_single_samples_less(golden: Path, data: st.DataObject) -> None:
    """Without a few samples of single rounds, no grade rises and the verdict is the same or undetermined."""
    trace = trace_of(golden)
    count = sum(len(snapshot.samples) for snapshot in trace.snapshots)
    numbers = data.draw(st.frozensets(st.integers(0, count - 1), min_size=1, max_size=4))
    check(diagnosis_of(golden), diagnose(without_samples(trace, numbers), "trace"), f"samples {sorted(numbers)}")


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.stem)
def test_no_reading_at_all(golden: Path) -> None:
    """Without any reading the verdict is undetermined, whatever was recorded."""
    trace = trace_of(golden)
    assert diagnose(without(trace, frozenset(groups_of(trace))), "trace").verdict == "undetermined"
