"""Programs that print into files and wait, run by every CPython there is; each says when all is printed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hangdoc.model.buffer import Buffers, HiddenText
from hangdoc.model.reading import Known
from hangdoc_probes import buffers
from tests.conftest import NOT_TO_BE_HAD
from tests.unit.probes.targets import known, process_of, take

RELEASES = ("3.9.18", "3.10.13", "3.11.7", "3.12.1", "3.13.0")
PYTHONS = {f"cpython-{one}": Path.home() / ".pyenv" / "versions" / one / "bin" / "python3" for one in RELEASES}
PYTHONS["system-python3"] = Path("/usr/bin/python3")

SAID = "import io, os, sys\n"
THEN_WAITS = "\nos.write(int(os.environ['SAY']), b'.')\nos.read(int(os.environ['HEAR']), 1)\n"
"""What stands before and after each Python program: it reports on pipes of its own, its outputs are files."""


@dataclass(frozen=True)
class Printer:
    """A program that has printed. out, err: what has arrived in the files of its descriptors 1 and 2."""

    child: subprocess.Popen[bytes]
    folder: Path
    say: int
    hear: int

    @property
    def pid(self) -> int:
        return self.child.pid

    def arrived(self, fd: int) -> bytes:
        return (self.folder / f"{fd}").read_bytes()

    def wait_until_it_said(self) -> None:
        assert os.read(self.hear, 1) == b".", "the program ended early"

    def let_go(self) -> None:
        os.write(self.say, b".")


def python_at(path: Path) -> str:
    if not path.exists():
        pytest.skip(f"{NOT_TO_BE_HAD}{path} is not installed")
    return str(path)


@contextmanager
def printing(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> Iterator[Printer]:
    """Run a program with files as its outputs until the test is done with it; it has said that all is printed."""
    hear, saying = os.pipe()
    hearing, say = os.pipe()
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    own |= {"SAY": str(saying), "HEAR": str(hearing), "PYTHONIOENCODING": "utf-8", **(environment or {})}
    with (folder / "1").open("wb") as out, (folder / "2").open("wb") as err:
        child = subprocess.Popen(command, stdout=out, stderr=err, env=own, pass_fds=(saying, hearing))
    os.close(saying)
    os.close(hearing)
    try:
        printer = Printer(child, folder, say, hear)
        printer.wait_until_it_said()
        yield printer
    finally:
        child.kill()
        child.wait()
        os.close(hear)
        os.close(say)


def program(code: str) -> str:
    return SAID + code + THEN_WAITS


def buffers_of(pid: int) -> Buffers:
    (sample,) = take(buffers.PROBE, process_of(pid))
    return known(sample, Buffers)


def python_texts(pid: int) -> dict[int, HiddenText]:
    """What CPython's streams hold back, by descriptor."""
    found = buffers_of(pid).python
    assert isinstance(found, Known), found
    assert len({text.fd for text in found.value}) == len(found.value)
    return {text.fd: text for text in found.value}


def c_texts(pid: int) -> dict[int, HiddenText]:
    """What the C library's streams hold back, by descriptor."""
    found = buffers_of(pid).c
    assert isinstance(found, Known), found
    return {text.fd: text for text in found.value}
