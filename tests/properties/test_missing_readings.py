"""A reading that is taken away never makes anything more certain."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from itertools import combinations
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
SMALL = sorted((Path(__file__).parents[1] / "golden/patients").glob("*.hangtrace"))
PARTS, THINNED = 4, 8
"""Tests that the patients are spread over, and how many losses of one patient stand for one that is tried."""

TENTH = 1 if os.environ.get("HANGDOC_EVERY_LOSS") else 10
"""How many losses of one or two samples stand for one that is tried: all 80,000 (`make losses`) take ten minutes."""

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


def losses_of(trace: Trace) -> dict[tuple[str, int], int]:
    """Map each probe and round to one sample of it, counted over all rounds: what else of both is lost is the same."""
    samples = [(sample.probe, at) for at, snapshot in enumerate(trace.snapshots) for sample in snapshot.samples]
    return {place: number for number, place in enumerate(samples)}


def lose(golden: Path, sets: Iterable[tuple[int, ...]]) -> None:
    for numbers in sets:
        lost = diagnose(without_samples(trace_of(golden), frozenset(numbers)), "trace")
        check(diagnosis_of(golden), lost, f"samples {numbers}")


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.stem)
def test_a_sample_is_lost(golden: Path) -> None:
    """Without a sample of any probe in any round of a server no grade rises; the verdict stays or is undetermined."""
    lose(golden, ((number,) for number in losses_of(trace_of(golden)).values()))


@pytest.mark.parametrize("part", range(PARTS))
def test_a_sample_of_a_small_launch_is_lost(part: int) -> None:
    """The same of the patients, each with other rounds of other probes than the next one; all of it takes minutes."""
    for number, golden in enumerate(SMALL):
        places = sorted(losses_of(trace_of(golden)).items())
        lose(golden, ((sample,) for at, (_, sample) in enumerate(places) if (at + number) % (PARTS * THINNED) == part))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(GOLDEN + SMALL)), ids=lambda number: (GOLDEN + SMALL)[number].stem)
def test_any_sample_and_any_two_of_a_probe(number: int) -> None:
    """The same without a single sample, and without two of one probe in different rounds; each launch tries others."""
    golden = (GOLDEN + SMALL)[number]
    trace = trace_of(golden)
    count = sum(len(snapshot.samples) for snapshot in trace.snapshots)
    pairs = [(one, two) for ((a, _), one), ((b, _), two) in combinations(losses_of(trace).items(), 2) if a == b]
    lose(golden, [*((one,) for one in range(count)), *pairs][number % TENTH :: TENTH])


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.stem)
def test_no_reading_at_all(golden: Path) -> None:
    """Without any reading the verdict is undetermined, whatever was recorded."""
    trace = trace_of(golden)
    assert diagnose(without(trace, frozenset(groups_of(trace))), "trace").verdict == "undetermined"
