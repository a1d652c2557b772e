"""Memory that lies: whatever a target's memory holds, reading its buffers ends, raises nothing and stays bounded."""

from __future__ import annotations

import struct
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hangdoc.cpython.objects import Cpython, cpython, items, key_of, members, pieces
from hangdoc.cpython.runtime import Interpreter
from hangdoc.glibc.stdio import c_streams
from hangdoc.memory.bounded import Bounded, SpentError
from hangdoc.memory.elf import Exports, Loaded, Symbol, exports, gnu_hash, loaded, symbol
from hangdoc.memory.image import Image, UnknownLayoutError, UnreadableError, unreadable
from hangdoc.memory.process import ProcessMemory
from hangdoc.model.buffer import Buffers
from hangdoc.model.reading import Known
from hangdoc_probes import buffers
from hangdoc_probes.buffers import MOST_BYTES, MOST_READS, Target
from tests.unit.memory.synthetic import Synthetic
from tests.unit.probes.printers import printing, program
from tests.unit.probes.targets import context, process_of, round_of

ODD = st.sampled_from([0, 1, 7, 0xFF, 2**31 - 1, 2**32, 2**47, 2**63 - 1, 2**63, 2**64 - 1, 4096, 1 << 20])


class Counted:
    """A memory that counts what is read of it."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self.reads = self.bytes = 0

    def read(self, address: int, size: int) -> bytes:
        self.reads += 1
        self.bytes += max(size, 0)
        return self._image.read(address, size)

    def read_many(self, ranges: Sequence[tuple[int, int]]) -> list[bytes | None]:
        self.reads += len(ranges)
        self.bytes += sum(size for _, size in ranges)
        return self._image.read_many(ranges)


class Replayed(Synthetic):
    """Reads as they were once answered."""

    def __init__(self, answers: Mapping[tuple[int, int], bytes]) -> None:
        super().__init__({})
        self._answers = answers

    def read(self, address: int, size: int) -> bytes:
        data = self._answers.get((address, size))
        if data is None:
            raise unreadable(address, size)
        return data


@lru_cache
def recorded() -> tuple[dict[tuple[int, int], bytes], Target, Buffers]:
    """A real CPython's memory as far as the probe reads it."""
    seen: dict[tuple[int, int], bytes] = {}
    kept: list[Target] = []

    class Recording(ProcessMemory):
        def read(self, address: int, size: int) -> bytes:
            found = super().read(address, size)
            seen[address, size] = found
            return found

        def read_many(self, ranges: Sequence[tuple[int, int]]) -> list[bytes | None]:
            found = super().read_many(ranges)
            seen.update((place, data) for place, data in zip(ranges, found, strict=True) if data is not None)
            return found

    def looked(target: Target) -> Buffers:
        kept.append(target)
        return buffers_of(target)

    buffers_of, memory = buffers.buffers_of, buffers.ProcessMemory
    command = [sys.executable, "-c", program("print('x' * 61); print('é'); sys.stderr.write('part')")]
    with TemporaryDirectory() as folder, printing(command, Path(folder)) as printer:
        buffers.ProcessMemory, buffers.buffers_of = Recording, looked  # type: ignore[misc]
        try:
            (sample,) = buffers.PROBE.open(context()).take(round_of(process_of(printer.pid)))
        finally:
            buffers.ProcessMemory, buffers.buffers_of = memory, buffers_of  # type: ignore[misc]
    assert isinstance(sample.reading, Known)
    assert isinstance(sample.reading.value, Buffers)
    return seen, kept[0], sample.reading.value


def replayed(lies: dict[tuple[int, int], bytes]) -> tuple[Buffers, Counted]:
    seen, target, _ = recorded()
    counted = Counted(Replayed(seen | lies))
    image, heap = (Bounded(counted, MOST_BYTES, MOST_READS) for _ in range(2))
    return buffers.buffers_of(replace(target, image=image, heap=heap)), counted


def test_the_recorded_memory_gives_what_the_live_one_gave() -> None:
    """Without a lie the recording gives the same text, so the lies are what is tested."""
    found, counted = replayed({})
    assert found == recorded()[2]
    assert counted.reads > 100
    assert isinstance(found.python, Known)
    assert [text.tail for text in found.python.value] == ["x" * 61 + "\né\n", "part"]


@st.composite
def lies(draw: st.DrawFn) -> dict[tuple[int, int], bytes]:
    """A few pieces of the recorded memory with an odd number, or another address of it, somewhere in them."""
    seen = recorded()[0]
    places = sorted(seen)
    found = {}
    for place in draw(st.lists(st.sampled_from(places), min_size=1, max_size=4)):
        data = bytearray(seen[place])
        at = draw(st.integers(0, max(0, (len(data) - 1) // 8))) * 8
        number = draw(ODD | st.sampled_from(places).map(lambda one: one[0]) | st.integers(0, 2**64 - 1))
        data[at : at + 8] = struct.pack("<Q", number)[: len(data) - at]
        found[place] = bytes(data)
    return found


@settings(max_examples=300)
@given(lies())
def test_lies_in_a_real_memory(told: dict[tuple[int, int], bytes]) -> None:
    """Pointers that lead elsewhere, lengths of exabytes and cycles give a reading or a missing one, within bounds."""
    found, counted = replayed(told)
    assert counted.reads <= MOST_READS
    assert counted.bytes <= MOST_BYTES
    for one in (found.python, found.c):
        if isinstance(one, Known):
            assert all(0 <= text.size_bytes <= 1 << 21 and len(text.tail) <= 2000 for text in one.value)


@st.composite
def memories(draw: st.DrawFn) -> Image:
    """A small memory of numbers that are odd or lead back into it: it is full of cycles."""
    numbers = draw(st.lists(ODD | st.integers(4096, 4096 + 800) | st.integers(0, 2**64 - 1), min_size=8, max_size=100))
    return Synthetic({4096: struct.pack(f"<{len(numbers)}Q", *numbers)})


@given(memories(), st.integers(4096, 4896), st.sampled_from([(3, 9), (3, 11), (3, 14)]))
def test_small_memories_full_of_cycles(memory: Image, start: int, version: tuple[int, int]) -> None:
    """Each walk over lists, types, dictionaries and symbols ends with its result or its one error."""
    python = Cpython(version, start, 64, *(4096 + 8 * number for number in range(4)))
    counted = Counted(memory)
    image = Bounded(counted, MOST_BYTES, MOST_READS)
    for walk in (
        lambda: c_streams(image, start),
        lambda: members(image, start),
        lambda: list(items(image, python.version, start)),
        lambda: key_of(image, python, start),
        lambda: pieces(image, python, start),
        lambda: exports(image, Loaded("", 0, start)),
        lambda: list(loaded(image, struct.pack("<4Q", 3, start, 5, 3))),
        lambda: symbol(image, Exports(start, start, start + 8, start + 16), "name"),
    ):
        with suppress(UnreadableError, SpentError):
            walk()
    assert counted.reads <= MOST_READS


def file_of(chain: int, pending: bytes = b"") -> bytes:
    """A FILE of descriptor 1 whose buffer follows it."""
    data = bytearray(216 + len(pending))
    struct.pack_into("<I", data, 0, 0xFBAD2884)
    struct.pack_into("<QiI", data, 104, chain, 1, 0)
    data[216:] = pending
    return bytes(data)


def test_a_list_of_streams_without_an_end() -> None:
    """A cycle in _IO_list_all is refused, after as many reads as it has members."""
    cycle = {8192: struct.pack("<Q", 16384), 16384: file_of(32768), 32768: file_of(16384)}

    counted = Counted(Synthetic(cycle))
    with pytest.raises(UnreadableError, match="no end"):
        c_streams(counted, 8192)
    assert counted.reads < 10


def interpreter(header: bool, version: int | None, *more: str) -> tuple[Image, Interpreter]:
    """A memory of nothing but symbols: one bucket of a hash table, types, and Py_Version."""
    types = ("PyType_Type", "PyDict_Type", "PyUnicode_Type", "PyBytes_Type", "PyList_Type")
    names = (*types, "_PyRuntime", *more, *(() if version is None else ("Py_Version",)))
    strings = b"\0" + "\0".join(names).encode() + b"\0" * 200
    places = range(0x9000, 0x9000 + 64 * len(names), 64)
    symbols = bytes(24) + b"".join(
        struct.pack("<IBBHQQ", strings.index(f"\0{name}\0".encode()) + 1, 17, 0, 1, place, 64)
        for name, place in zip(names, places, strict=True)
    )
    chain = [gnu_hash(name) & ~1 for name in names]
    hashes = struct.pack(f"<5I{len(chain)}I", 1, 1, 0, 0, 1, *chain[:-1], chain[-1] | 1)
    data = bytearray(1024)
    for place in range(0, 64 * len(types), 64):
        struct.pack_into("<Q", data, place + 8, 0x9000 if header else 0)
    struct.pack_into("<Q", data, 64 * (len(names) - 1), version or 0)
    memory = Synthetic({0x1000: hashes, 0x2000: symbols, 0x4000: strings, 0x9000: bytes(data)})
    return memory, Interpreter(Exports(0, 0x4000, 0x2000, 0x1000), Symbol(0x9000 + 64 * len(types), 64), "python3")


def test_another_object_header_is_refused() -> None:
    """A free-threaded build has its type later in an object: nothing of it is read."""
    image, found = interpreter(False, 0x030D00F0)
    with pytest.raises(UnknownLayoutError, match="free-threaded"):
        cpython(image, found)


@pytest.mark.parametrize("version", [None, 0x02070000, 0x03080000, 0x030F00A1, 0x04000000])
def test_versions_that_nobody_proved_are_refused(version: int | None) -> None:
    """Before 3.9 and after 3.14 nothing is read; 3.8 is told by a function that it does not have yet."""
    image, found = interpreter(True, version)
    with pytest.raises(UnknownLayoutError, match="is not one whose objects are known"):
        cpython(image, found)


@pytest.mark.parametrize(
    ("version", "known"), [(None, (3, 9)), (0x030B02F0, (3, 11)), (0x030D00F0, (3, 13)), (0x030E00F0, (3, 14))]
)
def test_versions_that_are_read(version: int | None, known: tuple[int, int]) -> None:
    """3.11 and later say what they are; 3.9 and 3.10, whose objects are alike, do not."""
    image, found = interpreter(True, version, "PyFrame_GetCode")
    assert cpython(image, found).version == known
