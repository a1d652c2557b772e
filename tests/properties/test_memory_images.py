"""Whatever a target's memory holds, reading it ends, raises nothing but "unreadable", and names no false owner."""

from __future__ import annotations

import struct
from contextlib import suppress

from hypothesis import example, given
from hypothesis import strategies as st

from hangdoc.cpython.frames import Reader, parse_handlers
from hangdoc.cpython.gil import gil_at, gil_waited_for
from hangdoc.cpython.layouts import LAYOUTS
from hangdoc.cpython.locks import PythonLocks
from hangdoc.cpython.runtime import Runtime, find_runtime
from hangdoc.glibc.descriptor import tid_of
from hangdoc.glibc.locks import BEFORE_BYTES, Around, Crew, Owned, recognise
from hangdoc.memory.image import UnreadableError
from hangdoc.model.reading import Known
from hangdoc.procfs.syscalls import FutexCall
from tests.unit.memory.synthetic import Endless, Synthetic

ADDRESS = 0x7F00_0000_1000
TIDS = frozenset({101, 102, 103})
CREW = Crew(TIDS, "x86_64")

small = st.sampled_from([0, 1, 2, 3, 4, 16, 32, 101, 102, 128, 5000, 0x80000065, 0x40000065, 0xFFFFFFFF])
words32 = st.one_of(small, st.integers(0, 2**32 - 1))
calls = st.builds(
    FutexCall,
    address=st.just(ADDRESS),
    command=st.sampled_from([0, 6, 9, 11, 13]),
    value=words32,
    private=st.booleans(),
    timed=st.booleans(),
)


def image_of(numbers: list[int], cut: int) -> Synthetic:
    """Words around the futex; what lies before `cut` is not mapped."""
    data = struct.pack(f"<{len(numbers)}I", *numbers)
    return Synthetic({ADDRESS - BEFORE_BYTES + cut: data[cut:]})


@given(st.lists(words32, min_size=24, max_size=24), st.sampled_from([0, 8, 40, 48]), calls)
def test_no_lock_is_read_into_any_memory_with_a_false_owner(numbers: list[int], cut: int, call: FutexCall) -> None:
    """An owner is the number that stands in the owner's place of a lock every field of which fits."""
    found = recognise(Around(image_of(numbers, cut), ADDRESS), call, CREW)
    assert isinstance(found, Owned)
    if not isinstance(found.owner, Known) or found.owner.value is None:
        return
    here = BEFORE_BYTES // 4
    owner, kind = numbers[here + 2], numbers[here + 4]
    match found.kind:
        case "mutex":
            assert (found.owner.value, call.value, numbers[here]) == (owner, 2, 2)
            assert bool(kind & 128) != call.private
            assert not any(numbers[here + 6 : here + 10])
        case "pi-mutex" | "robust-mutex":
            assert found.owner.value == owner == numbers[here] & 0x3FFFFFFF
        case "rwlock":
            assert found.owner.value in numbers
            assert found.owner.value in TIDS or not call.private
        case _:
            raise AssertionError(found)


HELD = [0] * 12 + [2, 0, 101, 1, 0, 0, 0, 0, 0, 0, 0, 0]
WAITS = FutexCall(ADDRESS, 0, 2, private=True, timed=False)


@given(st.integers(12, 21), words32)
@example(12, 1)
def test_a_mutex_with_one_field_that_does_not_fit_has_no_owner(place: int, other: int) -> None:
    """Each field counts: with another number in it, there is no owner, or the lock is as valid as before."""
    assert recognise(Around(image_of(HELD, 0), ADDRESS), WAITS, CREW).owner == Known(101)
    changed = [*HELD]
    changed[place] = other
    found = recognise(Around(image_of(changed, 0), ADDRESS), WAITS, CREW)
    valid = {
        14: 0 < other <= 1 << 22,
        15: 1 <= other <= len(TIDS) + 1,
        16: other & ~0x300 in {0, 2, 3},
        17: other == 0,
    }
    if isinstance(found.owner, Known) and found.owner.value is not None:
        assert other == HELD[place] or valid.get(place, False)


seeds = st.integers(0, 2**64 - 1)


def endless(seed: int, favourites: list[int]) -> Endless:
    """Memory in which words are pointers, small numbers or the favourites, told by the seed."""

    def word_at(address: int) -> int:
        chosen = hash((seed, address)) & 0xFFFFFFFF
        if chosen % 4 == 0:
            return favourites[chosen // 4 % len(favourites)]
        return (0, 1, ADDRESS + chosen % 4096 * 8, chosen)[chosen // 4 % 4]

    return Endless(word_at)


favourites = st.lists(
    st.one_of(st.sampled_from([0, 1, 101, 102, 5000, ADDRESS]), st.integers(0, 2**64 - 1)), min_size=1, max_size=8
)


@given(seeds, favourites, st.sampled_from(sorted(LAYOUTS)), st.sampled_from(["x86_64", "aarch64", "other"]))
def test_no_python_is_read_into_any_memory(seed: int, known: list[int], minor: int, machine: str) -> None:
    """Chains end, nothing is raised but "unreadable", and every holder is a thread of the process."""
    image, crew = endless(seed, known), Crew(TIDS, machine)
    found = PythonLocks(image, Runtime(ADDRESS, LAYOUTS[minor], minor), crew).held({101: ADDRESS, 102: ADDRESS + 8})
    assert {lock.holder_tid for lock in found} <= TIDS | {None}
    gil = gil_at(image, ADDRESS, crew)
    assert gil is None or gil.holder_tid in TIDS or not gil.locked
    call = FutexCall(ADDRESS, 9, 0, private=True, timed=True)
    gil_waited_for(Around(image, ADDRESS), call, crew)
    assert tid_of(image, ADDRESS, machine) is None or machine != "other"
    reader = Reader(image, LAYOUTS[minor])
    assert len(list(reader.frames(ADDRESS))) <= 500


@given(seeds, favourites, st.binary(max_size=64))
def test_no_symbol_is_read_into_any_memory(seed: int, known: list[int], auxiliary: bytes) -> None:
    """A damaged list of libraries ends, raises nothing but "unreadable", and leads to no interpreter that is none."""
    image = endless(seed, known)
    headers = struct.pack("<4Q", 3, ADDRESS, 5, 3)
    for vector in (auxiliary, headers + auxiliary):
        with suppress(UnreadableError):
            find_runtime(image, vector, "/usr/bin/python3.11")


@given(st.binary(max_size=200))
def test_any_bytes_are_an_exception_table_or_the_beginning_of_one(table: bytes) -> None:
    """Reading it ends, and its depths are numbers that a frame can refuse."""
    assert all(depth >= 0 and first <= end for first, end, depth in parse_handlers(table))


@given(st.sampled_from([(40, 36), (44, 36), (32, 28), (36, 28)]), st.integers(1, 4))
def test_a_condition_of_either_layout_has_no_owner(words_at: tuple[int, int], waiters: int) -> None:
    """The words moved in glibc 2.41; before and after nobody owns a condition."""
    word, count = words_at
    fields = bytearray(64)
    struct.pack_into("<QQ", fields, 0, 2 * waiters + 8, 4)
    if word in {40, 44}:
        struct.pack_into("<I", fields, 16 if word == 40 else 20, 2)
    struct.pack_into("<I", fields, count, waiters << 3)
    image = Synthetic({ADDRESS - word - 64: bytes(64) + bytes(fields) + bytes(64)})
    call = FutexCall(ADDRESS, 9, 0, private=True, timed=False)
    assert recognise(Around(image, ADDRESS), call, CREW) == Owned("condition", Known(None))
