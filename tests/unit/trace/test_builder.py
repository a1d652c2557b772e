"""The trace while it grows in memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hangdoc.trace.builder import StackTable, TraceBuilder
from hangdoc.trace.records import Trace
from tests.unit.trace import sample


def test_equal_stacks_get_one_number() -> None:
    """Interning an equal stack gives the first one's number; numbers count from 0 in order of arrival."""
    table = StackTable()
    assert [table.intern(sample.stack_of(n)) for n in (3, 4, 3, 0)] == [0, 1, 0, 2]
    assert list(table) == [sample.stack_of(n) for n in (3, 4, 0)]


def test_probes_beside_the_clock_may_intern() -> None:
    """Stacks interned from several threads keep number and entry together."""
    table = StackTable()
    stacks = [sample.stack_of(n % 50) for n in range(2000)]
    with ThreadPoolExecutor(4) as pool:
        numbers = list(pool.map(table.intern, stacks))
    assert len(table) == 50
    assert [table[number] for number in numbers] == stacks


def test_the_trace_so_far_is_a_view_of_the_same_records() -> None:
    """Asking for the trace copies no snapshot, and what comes later does not change what was given out."""
    whole = sample.trace()
    builder = TraceBuilder(whole.header)
    builder.add(whole.snapshots[0])
    first = builder.trace()
    builder.add(whole.snapshots[1])
    assert first == Trace(header=whole.header, stacks=(), snapshots=whole.snapshots[:1])
    assert builder.trace().snapshots[0] is first.snapshots[0]
