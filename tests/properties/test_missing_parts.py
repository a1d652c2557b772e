"""A part of a reading that is taken away, by a kernel that keeps it or a right that lacks, makes nothing more certain.

A probe's reading of a process may be there while a part of it is not: the ends of one wait, the owner of a lock, the
bytes of a socket. Each of these is a reading in the records (Known or Missing), and is taken away here alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from hangdoc.diagnosis import diagnose
from hangdoc.model.reading import Known, Missing
from hangdoc.model.snapshot import Sample, Snapshot
from hangdoc.trace.records import Trace
from tests.properties.test_missing_readings import GOLDEN, SMALL, check, diagnosis_of, trace_of

Part = tuple[str, str, str]
"""A probe, a record of its reading, and the field of that record that is a reading itself."""

THINNED = 2
"""How many small launches stand for one that is tried in the fast part; every part of every launch takes minutes."""


def parts_of(trace: Trace) -> list[Part]:
    """Return every part that is known somewhere in a trace."""
    found: set[Part] = set()
    for snapshot in trace.snapshots:
        for sample in snapshot.samples:
            if isinstance(sample.reading, Known):
                found |= {(sample.probe, *part) for part in _within(sample.reading.value)}
    return sorted(found)


def _within(record: Any) -> set[tuple[str, str]]:
    if isinstance(record, tuple):
        return set[tuple[str, str]]().union(*map(_within, record))
    if not isinstance(record, msgspec.Struct):
        return set()
    found: set[tuple[str, str]] = set()
    for name in record.__struct_fields__:
        value = getattr(record, name)
        if isinstance(value, Known):
            found |= {(type(record).__name__, name)} | _within(value.value)
        elif not isinstance(value, Missing):
            found |= _within(value)
    return found


def without_part(trace: Trace, part: Part) -> Trace:
    """Return the trace as if this part had been refused wherever it stands."""
    probe, kind, field = part

    def less(record: Any) -> Any:
        if isinstance(record, tuple):
            return tuple(map(less, record))
        if not isinstance(record, msgspec.Struct):
            return record
        changed = {}
        for name in record.__struct_fields__:
            value = getattr(record, name)
            refused = isinstance(value, Known) and (type(record).__name__, name) == (kind, field)
            changed[name] = Missing(probe, "denied") if refused else less(value)
        return msgspec.structs.replace(record, **changed)

    def thinner(sample: Sample) -> Sample:
        if sample.probe != probe or not isinstance(sample.reading, Known):
            return sample
        return msgspec.structs.replace(sample, reading=Known(less(sample.reading.value)))

    def all_of(snapshot: Snapshot) -> Snapshot:
        return msgspec.structs.replace(snapshot, samples=tuple(map(thinner, snapshot.samples)))

    return msgspec.structs.replace(trace, snapshots=tuple(map(all_of, trace.snapshots)))


def take_away(golden: Path, part: Part) -> None:
    after = diagnose(without_part(trace_of(golden), part), "trace")
    check(diagnosis_of(golden), after, f"{part} of {golden.stem}")


def test_a_part_of_a_reading_less() -> None:
    """Without one part of one probe's readings no grade rises and no hang appears; each launch loses another part."""
    for number, golden in enumerate(SMALL[::THINNED]):
        parts = parts_of(trace_of(golden))
        take_away(golden, parts[number % len(parts)])


def test_a_circle_of_locks_beside_compilers() -> None:
    """Of a deadlock beside compilers no part of the locks and waits can be lost so that it seems to compile."""
    (golden,) = (one for one in SMALL if one.stem == "lock-taken-twice-beside-compile-workers")
    for part in parts_of(trace_of(golden)):
        if part[0] in {"futex", "links", "locks"}:
            take_away(golden, part)


@pytest.mark.slow
@pytest.mark.parametrize("golden", [*GOLDEN, *SMALL], ids=lambda golden: golden.stem)
def test_every_part_of_a_reading(golden: Path) -> None:
    """The same for every part of every launch."""
    for part in parts_of(trace_of(golden)):
        take_away(golden, part)
