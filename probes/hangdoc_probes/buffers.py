"""Text that a process has printed and that has not left it: in the C library's streams and in CPython's."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, TypeVar

from hangdoc.model.buffer import Buffers, HiddenText
from hangdoc.model.process import Process
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Payload, Sample
from hangdoc.procfs.mappings import Mapping, parse_mappings
from hangdoc.procfs.stat import parse_stat
from hangdoc.sampling.probe import Context, Probe, Round, Session
from hangdoc.sampling.schedule import DENSE_EVERY
from hangdoc_probes._cpython import Cpython, cpython
from hangdoc_probes._image import Image, UnreadError
from hangdoc_probes._memory import Memory
from hangdoc_probes._reading import missing, read, samples
from hangdoc_probes._stdio import LIST, CStream, c_streams
from hangdoc_probes._streams import PythonStream, python_streams
from hangdoc_probes._symbols import exports
from hangdoc_probes._sysmodule import DataRanges, find_sys, names_of

NAME = "buffers"
T = TypeVar("T")

TAIL_CHARACTERS = 2000
"""Of the last text that is kept to be shown (the contract of HiddenText)."""

MOST_ATTEMPTS = 6
"""Readings of a process that prints meanwhile; two in a row have to be equal. Arbitrary."""

C_LIBRARY = re.compile(r"libc(?:\.so\.6|-2\.\d+\.so)")
"""glibc's file names, also those before 2.34."""

PYTHON = re.compile(r"(?:lib)?python\d?")
"""How the file that holds CPython is called; any other program may hold it too and is looked at as well."""

WHOLE = frozenset({"denied", "gone"})
"""Reasons that are the process's, not a library's."""

C_NAMES: dict[int, Literal["c-stdout", "c-stderr"]] = {1: "c-stdout", 2: "c-stderr"}


@dataclass(frozen=True)
class Target:
    """One process's memory and what lies in it."""

    image: Image
    mappings: tuple[Mapping, ...]
    program: str

    def loaded(self) -> Iterator[Mapping]:
        """Yield the beginning of every file that is mapped."""
        seen = set()
        for one in self.mappings:
            if one.path.startswith("/") and one.offset == 0 and one.path not in seen:
                seen.add(one.path)
                yield one


class BuffersSession:
    """Holds nothing: an exec moves everything, and finding it anew takes some milliseconds."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc

    def take(self, now: Round) -> Iterable[Sample]:
        """Read the buffers of every process in a thorough round."""
        return samples(NAME, now, self._take_process) if now.thorough else ()

    def close(self) -> None:
        """Nothing is held."""

    def _take_process(self, process: Process) -> Reading[Payload]:
        pid = process.key.pid
        if parse_stat(read(f"{self._proc}/{pid}/stat")).state in "ZX":
            return Missing(NAME, "gone", "the process is a zombie: its memory is freed")
        memory = Memory(NAME, pid, self._proc)
        try:
            mappings = parse_mappings(Path(f"{self._proc}/{pid}/maps").read_bytes())
            program = str(Path(f"{self._proc}/{pid}/exe").readlink()).removesuffix(" (deleted)")
            buffers = buffers_of(Target(Image(NAME, memory.read), mappings, program))
        finally:
            memory.close()
        if parse_stat(read(f"{self._proc}/{pid}/stat")).start_ticks != process.key.start_ticks:
            return Missing(NAME, "gone", "the process has ended, and its pid was given to another")
        if isinstance(buffers.python, Missing) and isinstance(buffers.c, Missing) and buffers.c.reason in WHOLE:
            return buffers.c
        return Known(buffers)


def buffers_of(target: Target) -> Buffers:
    """Read what a process holds back; what is not certain is missing."""
    return Buffers(
        python=_certain(target.image, lambda: _python(target), _python_texts),
        c=_certain(target.image, lambda: _c(target), _c_texts),
    )


def _certain(
    image: Image,
    look: Callable[[], Callable[[], tuple[T, ...]]],
    texts: Callable[[tuple[T, ...], tuple[T, ...]], tuple[HiddenText, ...] | None],
) -> Reading[tuple[HiddenText, ...]]:
    """Read until two readings in a row agree; a process that prints meanwhile makes a torn one possible."""
    failure = image.refused("failed", "its streams change faster than they can be read").missing
    try:
        measure = look()
    except UnreadError as error:
        return error.missing
    before: tuple[T, ...] | None = None
    for _ in range(MOST_ATTEMPTS):
        try:
            now = measure()
        except (UnreadError, struct.error) as error:
            before = None
            if isinstance(error, UnreadError):
                failure = error.missing
            if failure.reason != "failed":
                break
            continue
        if before is not None and (agreed := texts(before, now)) is not None:
            return Known(agreed)
        before = now
    return failure


def _c(target: Target) -> Callable[[], tuple[CStream, ...]]:
    """Find the C library's list of streams."""
    for one in target.loaded():
        if C_LIBRARY.fullmatch(PurePosixPath(one.path).name) and (table := exports(target.image, one.start)):
            streams = table.find(target.image, LIST)
            if streams is not None:
                address = streams.address
                return lambda: c_streams(target.image, address)
    raise target.image.refused("unsupported", "its C library is not glibc, or is a part of the program itself")


def _c_texts(before: tuple[CStream, ...], now: tuple[CStream, ...]) -> tuple[HiddenText, ...] | None:
    """Return outputs that were used and files that hold text; a file that is being written is left out."""
    if [one for one in before if one.fd in C_NAMES] != [one for one in now if one.fd in C_NAMES]:
        return None
    kept = [one for one in now if one in before and (one.data or (one.used and one.fd in C_NAMES))]
    return tuple(_text(C_NAMES.get(one.fd, "file"), one.fd, one.data) for one in kept)


def _python(target: Target) -> Callable[[], tuple[PythonStream, ...]]:
    """Find CPython and its sys module; without one there is nothing to read."""
    python = _interpreter(target)
    if python is None:
        return tuple
    address = find_sys(target.image, python, DataRanges(target.mappings))

    def measure() -> tuple[PythonStream, ...]:
        names = names_of(target.image, python, address)
        if names is None:
            raise target.image.refused("failed", "the sys module changed while it was read")
        return python_streams(target.image, python, names)

    return measure


def _interpreter(target: Target) -> Cpython | None:
    expected = False
    for one in target.loaded():
        named = PYTHON.match(PurePosixPath(one.path).name) is not None
        if not named and one.path != target.program:
            continue
        expected = expected or named
        table = exports(target.image, one.start)
        found = None if table is None else cpython(target.image, table)
        if found is not None:
            return found
    if expected:
        raise target.image.refused("unsupported", "this python does not export where its objects are")
    return None


def _python_texts(before: tuple[PythonStream, ...], now: tuple[PythonStream, ...]) -> tuple[HiddenText, ...] | None:
    if before != now:
        return None
    return tuple(_text(one.stream, one.fd, one.data, one.replaced_by) for one in now)


def _text(
    stream: Literal["stdout", "stderr", "c-stdout", "c-stderr", "file"], fd: int, data: bytes, replaced_by: str = ""
) -> HiddenText:
    tail = data.decode("utf-8", "replace")[-TAIL_CHARACTERS:]
    return HiddenText(stream=stream, fd=fd, size_bytes=len(data), tail=tail, replaced_by=replaced_by)


def open_session(context: Context) -> Session:
    """Start reading a launch."""
    return BuffersSession(context.proc)


def check(proc: Path) -> Reading[str]:
    """Say whether memory can be read here."""
    memory = Memory(NAME, int(read(f"{proc}/self/stat").split()[0]), proc)
    try:
        first = parse_mappings(Path(f"{proc}/self/maps").read_bytes())[0]
        found = memory.read(first.start, 1)
    except OSError as error:
        return missing(NAME, error, attach=True)
    finally:
        memory.close()
    if isinstance(found, Missing):
        return found
    return Known("text not yet written by glibc's and CPython's streams; needs the right to trace the process")


PROBE = Probe(
    name=NAME,
    title="text that was printed and has not left the process",
    open=open_session,
    check=check,
    every=DENSE_EVERY,
    background=True,
    deadline_s=5.0,
    reads=("/proc/PID/maps", "the memory of streams, by process_vm_readv or /proc/PID/mem"),
)
