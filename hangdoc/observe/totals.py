"""The totals that have not moved since the rounds that left the ring: what they are, and since when they stand."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from hangdoc.features.index import Index, Window
from hangdoc.features.motion import flow
from hangdoc.features.standing import STOOD, is_still
from hangdoc.model.link import Links
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known
from hangdoc.model.snapshot import Payload, Sample, Snapshot
from hangdoc.model.thread import Progress
from hangdoc.trace.records import Header, Trace


def standing_totals(header: Header, before: Snapshot | None, leaving: Snapshot) -> tuple[Sample, ...]:
    """Return the samples that stand for the totals of all rounds up to the one that leaves.

    Of each process its last totals, those of its TCP connections, and the earliest totals from which no round moved.
    A process whose totals could not be read in the round that leaves starts again: it may have moved meanwhile.
    """
    rounds = (leaving,) if before is None else (before, leaving)
    index = Index(Trace(header=header, stacks=(), snapshots=rounds))
    here = Index(Trace(header=header, stacks=(), snapshots=(leaving,)))
    span = Window(0, len(rounds) - 1, rounds[0].at_ns, leaving.at_ns)
    return tuple(kept for sample in leaving.samples for kept in _kept(index, here, span, sample))


def _kept(index: Index, here: Index, span: Window, sample: Sample) -> Iterator[Sample]:
    key = sample.process
    if sample.probe != "progress" or key is None or not isinstance(sample.reading, Known):
        return
    first = replace(sample, probe=STOOD)
    earlier = index.known(STOOD, key, Progress, span)
    moved = flow(index, key, span)
    if earlier and isinstance(moved, Known) and is_still(moved.value):
        taken_ns, totals = earlier[0]
        first = replace(first, taken_ns=taken_ns, reading=Known(totals))
    yield first
    yield sample
    yield from _connections(here, key)


def _connections(here: Index, key: ProcessKey) -> Iterator[Sample]:
    for taken_ns, links in here.known("links", key, Links, Window(0, 0, 0, 0)):
        reading: Known[Payload] = Known(Links(links=(), tcp=links.tcp, thorough=False))
        yield Sample(probe="links", process=key, taken_ns=taken_ns, reading=reading)
