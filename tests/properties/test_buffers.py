"""Memory that lies: whatever a target's memory holds, reading its buffers ends, raises nothing and stays bounded."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hangdoc.model.buffer import Buffers
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.procfs.mappings import Mapping
from hangdoc_probes import _memory, buffers
from hangdoc_probes._cpython import Cpython, cpython, items, key_of, members, pieces
from hangdoc_probes._image import MOST_BYTES, MOST_READS, Image, UnreadError
from hangdoc_probes._stdio import c_streams
from hangdoc_probes._symbols import Exports, exports, gnu_hash
from tests.unit.probes.printers import printing, program
from tests.unit.probes.targets import context, process_of, round_of

Read = Callable[[int, int], Reading[bytes]]
NOWHERE = Missing("buffers", "failed", "a part of the memory is not mapped")
ODD = st.sampled_from([0, 1, 7, 0xFF, 2**31 - 1, 2**32, 2**47, 2**63 - 1, 2**63, 2**64 - 1, 4096, 1 << 20])


class Counted:
    """A memory that counts what is read of it."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self.reads = self.bytes = 0

    def __call__(self, address: int, length: int) -> Reading[bytes]:
        if not (0 < length <= _memory.MOST_AT_ONCE_BYTES and 0 < address < _memory.LAST_ADDRESS):
            return NOWHERE
        self.reads += 1
        self.bytes += length
        return self._read(address, length)


@lru_cache
def recorded() -> tuple[dict[tuple[int, int], bytes], tuple[Mapping, ...], str, Buffers]:
    """A real CPython's memory as far as the probe reads it."""
    seen: dict[tuple[int, int], bytes] = {}
    kept: list[buffers.Target] = []

    class Recording(_memory.Memory):
        def read(self, address: int, length: int) -> Reading[bytes]:
            found = super().read(address, length)
            if isinstance(found, Known):
                seen[address, length] = found.value
            return found

    def looked(target: buffers.Target) -> Buffers:
        kept.append(target)
        return buffers_of(target)

    buffers_of, memory = buffers.buffers_of, buffers.Memory
    command = [sys.executable, "-c", program("print('x' * 61); print('é'); sys.stderr.write('part')")]
    with TemporaryDirectory() as folder, printing(command, Path(folder)) as printer:
        buffers.Memory, buffers.buffers_of = Recording, looked  # type: ignore[misc]
        try:
            (sample,) = buffers.PROBE.open(context()).take(round_of(process_of(printer.pid)))
        finally:
            buffers.Memory, buffers.buffers_of = memory, buffers_of  # type: ignore[misc]
    assert isinstance(sample.reading, Known)
    assert isinstance(sample.reading.value, Buffers)
    return seen, kept[0].mappings, kept[0].program, sample.reading.value


def replayed(lies: dict[tuple[int, int], bytes]) -> tuple[Buffers, Counted]:
    seen, mappings, path, _ = recorded()

    def read(address: int, length: int) -> Reading[bytes]:
        data = lies.get((address, length)) or seen.get((address, length))
        return NOWHERE if data is None else Known(data)

    counted = Counted(read)
    return buffers.buffers_of(buffers.Target(Image("buffers", counted), mappings, path)), counted


def test_the_recorded_memory_gives_what_the_live_one_gave() -> None:
    """Without a lie the recording gives the same text, so the lies are what is tested."""
    found, counted = replayed({})
    assert found == recorded()[3]
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
def memories(draw: st.DrawFn) -> Read:
    """A small memory of numbers that are odd or lead back into it: it is full of cycles."""
    numbers = draw(st.lists(ODD | st.integers(4096, 4096 + 800) | st.integers(0, 2**64 - 1), min_size=8, max_size=100))
    data = struct.pack(f"<{len(numbers)}Q", *numbers)

    def read(address: int, length: int) -> Reading[bytes]:
        start = address - 4096
        piece = data[start : start + length] if start >= 0 else b""
        return Known(piece) if len(piece) == length else NOWHERE

    return read


@given(memories(), st.integers(4096, 4896), st.sampled_from([(3, 9), (3, 11), (3, 14)]))
def test_small_memories_full_of_cycles(read: Read, start: int, version: tuple[int, int]) -> None:
    """Each walk over lists, types, dictionaries and symbols ends with its result or its one error."""
    python = Cpython(version, start, 64, *(4096 + 8 * number for number in range(4)))
    counted = Counted(read)
    image = Image("buffers", counted)
    for walk in (
        lambda: c_streams(image, start),
        lambda: members(image, start),
        lambda: list(items(image, python, start)),
        lambda: key_of(image, python, start),
        lambda: pieces(image, python, start),
        lambda: exports(image, start),
        lambda: Exports(start, start, start + 8, start + 16).find(image, b"name"),
    ):
        with suppress(UnreadError):
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

    def read(address: int, length: int) -> Reading[bytes]:
        for base, data in cycle.items():
            if base <= address and address + length <= base + len(data):
                return Known(data[address - base :][:length])
        return NOWHERE

    counted = Counted(read)
    with pytest.raises(UnreadError, match="no end"):
        c_streams(Image("buffers", counted), 8192)
    assert counted.reads < 10


def interpreter(header: bool, version: int | None, *more: bytes) -> tuple[Image, Exports]:
    """A memory of nothing but symbols: one bucket of a hash table, types, and Py_Version."""
    types = (b"PyType_Type", b"PyDict_Type", b"PyUnicode_Type", b"PyBytes_Type", b"PyList_Type")
    names = (*types, b"_PyRuntime", *more, *(() if version is None else (b"Py_Version",)))
    strings = b"\0" + b"\0".join(names) + b"\0" * 200
    places = range(0x9000, 0x9000 + 64 * len(names), 64)
    symbols = bytes(24) + b"".join(
        struct.pack("<IBBHQQ", strings.index(b"\0" + name + b"\0") + 1, 17, 0, 1, place, 64)
        for name, place in zip(names, places, strict=True)
    )
    chain = [gnu_hash(name) & ~1 for name in names]
    hashes = struct.pack(f"<5I{len(chain)}I", 1, 1, 0, 0, 1, *chain[:-1], chain[-1] | 1)
    data = bytearray(1024)
    for place in range(0, 64 * len(types), 64):
        struct.pack_into("<Q", data, place + 8, 0x9000 if header else 0)
    struct.pack_into("<Q", data, 64 * (len(names) - 1), version or 0)
    memory = {0x1000: hashes, 0x2000: symbols, 0x4000: strings, 0x9000: bytes(data)}

    def read(address: int, length: int) -> Reading[bytes]:
        base = max((base for base in memory if base <= address), default=0)
        piece = memory.get(base, b"")[address - base :][:length]
        return Known(piece) if len(piece) == length else NOWHERE

    return Image("buffers", read), Exports(0, 0x2000, 0x4000, 0x1000)


def test_another_object_header_is_refused() -> None:
    """A free-threaded build has its type later in an object: nothing of it is read."""
    image, table = interpreter(False, 0x030D00F0)
    with pytest.raises(UnreadError, match="free-threaded") as caught:
        cpython(image, table)
    assert caught.value.missing.reason == "unsupported"


@pytest.mark.parametrize("version", [None, 0x02070000, 0x03080000, 0x030F00A1, 0x04000000])
def test_versions_that_nobody_proved_are_refused(version: int | None) -> None:
    """Before 3.9 and after 3.14 nothing is read; 3.8 is told by a function that it does not have yet."""
    image, table = interpreter(True, version)
    with pytest.raises(UnreadError, match="is not one whose objects are known") as caught:
        cpython(image, table)
    assert caught.value.missing.reason == "unsupported"


@pytest.mark.parametrize(
    ("version", "known"), [(None, (3, 9)), (0x030B02F0, (3, 11)), (0x030D00F0, (3, 13)), (0x030E00F0, (3, 14))]
)
def test_versions_that_are_read(version: int | None, known: tuple[int, int]) -> None:
    """3.11 and later say what they are; 3.9 and 3.10, whose objects are alike, do not."""
    image, table = interpreter(True, version, b"PyFrame_GetCode")
    found = cpython(image, table)
    assert found is not None
    assert found.version == known
