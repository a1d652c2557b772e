"""Reading a live process's memory: exactly what is there, or an error, and never a change."""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hangdoc.memory import process as reading
from hangdoc.memory.bounded import Bounded, SpentError
from hangdoc.memory.image import MOST_BYTES, UnreadableError, c_string, i32, u32, u64
from hangdoc.memory.process import ProcessMemory
from tests.unit.memory.synthetic import Synthetic


@pytest.fixture(params=["process_vm_readv", "mem file"])
def memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ProcessMemory:
    if request.param == "mem file":

        def blocked(*_: Any) -> int:
            ctypes.set_errno(errno.EPERM)
            return -1

        monkeypatch.setattr(reading, "_call", lambda: blocked)
    return ProcessMemory(os.getpid())


def test_what_is_there(memory: ProcessMemory) -> None:
    """Bytes, numbers and strings are read as they are, small and large, one and many."""
    block = ctypes.create_string_buffer(bytes(range(256)) * 1024)
    start = ctypes.addressof(block)
    assert memory.read(start, 4) == bytes(range(4))
    assert memory.read(start, 100_000) == block.raw[:100_000]
    assert (u64(memory, start), u32(memory, start + 4), i32(memory, start + 252)) == (
        0x0706050403020100,
        0x07060504,
        int.from_bytes(bytes((252, 253, 254, 255)), "little", signed=True),
    )
    many = [(start + at * 16, 16) for at in range(3000)]
    assert memory.read_many(many) == [block.raw[at * 16 : at * 16 + 16] for at in range(3000)]
    memory.close()


def test_what_is_not_there(memory: ProcessMemory) -> None:
    """Unmapped addresses and lengths without sense are unreadable; what lies around them is read all the same."""
    block = ctypes.create_string_buffer(b"text\0")
    start = ctypes.addressof(block)
    bad = [(0, 8), (8, 8), (start, 0), (start, MOST_BYTES + 1), (2**64 - 4, 8), (2**63, 8), (start, -1)]
    bad += [(-1, 8), (1 << 47, 8), (last_address() - 8, 16)]
    ranges = [one for each in bad for one in ((start, 4), each)]
    assert memory.read_many(ranges) == [b"text", None] * len(bad)
    for address, size in bad:
        with pytest.raises(UnreadableError):
            memory.read(address, size)
    assert c_string(memory, start) == "text"
    assert len(memory.read(last_address() - 8, 8)) == 8
    memory.close()


def last_address() -> int:
    """The end of our stack, behind which nothing is mapped."""
    line = next(line for line in Path("/proc/self/maps").read_bytes().splitlines() if b"[stack]" in line)
    return int(line.split()[0].split(b"-")[1], 16)


def test_another_proc_is_read_by_its_file(tmp_path: Path) -> None:
    """The numbers of another /proc are not those that process_vm_readv takes: only its mem file is asked."""
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "mem").symlink_to("/proc/self/mem")
    block = ctypes.create_string_buffer(b"text\0")
    memory = ProcessMemory(1, tmp_path)
    assert memory.read(ctypes.addressof(block), 4) == b"text"
    memory.close()


def test_a_budget_is_spent_once() -> None:
    """Within it everything is read as it is; beyond it nothing more is, by an error that no reader gets over."""
    pieces = Synthetic({4096: bytes(64)})
    for image in (Bounded(pieces, 32, 100), Bounded(pieces, 10_000, 4)):
        assert image.read_many([(4096, 8)] * 3) == [bytes(8)] * 3
        assert image.read(4096, 8) == bytes(8)
        for _ in range(2):
            with pytest.raises(SpentError):
                image.read(4096, 8)
        with pytest.raises(SpentError):
            image.read_many([(4096, 8)])
    assert not issubclass(SpentError, UnreadableError)


def test_a_process_that_ended(memory: ProcessMemory) -> None:
    """It is gone, which is no error of reading."""
    child = subprocess.Popen(["sleep", "60"])
    gone = ProcessMemory(child.pid)
    child.kill()
    child.wait()
    with pytest.raises((ProcessLookupError, FileNotFoundError)):
        gone.read(1 << 20, 8)


def test_no_memory_is_opened_for_writing() -> None:
    """The only way into the memory is a call that reads, or a file opened to read."""
    source = reading.__file__
    assert source is not None
    with open(source, encoding="utf-8") as file:  # noqa: PTH123
        text = file.read()
    assert "writev" not in text
    assert "O_RDWR" not in text
    assert "O_WRONLY" not in text
