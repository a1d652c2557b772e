"""Text that a process has printed and that has not left it: in the C library's streams and in CPython's."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from hangdoc.cpython.objects import cpython
from hangdoc.cpython.pools import MOST_POOLS, objects_of
from hangdoc.cpython.runtime import find_interpreter
from hangdoc.cpython.streams import PythonStream, python_streams, writer_types
from hangdoc.cpython.sysmodule import DataRanges, find_sys, names_of
from hangdoc.glibc.library import find_glibc
from hangdoc.glibc.stdio import LIST, CStream, c_streams
from hangdoc.memory.bounded import Bounded, SpentError
from hangdoc.memory.elf import symbol
from hangdoc.memory.image import Image, UnknownLayoutError, UnreadableError
from hangdoc.memory.process import ProcessMemory
from hangdoc.model.buffer import Buffers, HiddenText
from hangdoc.model.process import Process
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Payload, Sample
from hangdoc.procfs.maps import Mapping, parse_maps
from hangdoc.procfs.stat import parse_stat
from hangdoc.sampling.probe import Context, Probe, Round, Session
from hangdoc.sampling.schedule import DENSE_EVERY
from hangdoc_probes._reading import gone, missing, program_file, read, read_table, samples

NAME = "buffers"
T = TypeVar("T")

TAIL_CHARACTERS = 2000
"""Of the last text that is kept to be shown (the contract of HiddenText)."""

MOST_ATTEMPTS = 6
"""Readings of a process that prints meanwhile; two in a row have to be equal. Arbitrary."""

MOST_BYTES = 32 << 20
"""Read of one process in one take; arbitrary: ten times what a large interpreter takes."""

MOST_SEARCHED_BYTES = 256 << 20
"""Read of one process's heap in one take; arbitrary: the headers of 4 GiB and a tenth of a large interpreter's."""

MOST_READS = 30_000
"""Single reads of one process in one take (about 5 us each); arbitrary."""

WHOLE = frozenset({"denied", "gone"})
"""Reasons that are the process's, not a library's."""

C_NAMES: dict[int, Literal["c-stdout", "c-stderr"]] = {1: "c-stdout", 2: "c-stderr"}


@dataclass(frozen=True)
class Target:
    """One process's memory and what lies in it.

    heap: the same, to be searched; auxiliary: /proc/PID/auxv; program: the path of its file.
    """

    image: Image
    heap: Image
    mappings: tuple[Mapping, ...]
    auxiliary: bytes
    program: str


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
        memory = ProcessMemory(pid, self._proc)
        try:
            mappings = parse_maps(read_table(f"{self._proc}/{pid}/maps"))
            auxiliary, program = read(f"{self._proc}/{pid}/auxv"), program_file(self._proc, pid)
            image, heap = Bounded(memory, MOST_BYTES, MOST_READS), Bounded(memory, MOST_SEARCHED_BYTES, MOST_POOLS * 2)
            buffers = buffers_of(Target(image, heap, mappings, auxiliary, program))
        except PermissionError as error:
            return missing(NAME, error, attach=True)
        finally:
            memory.close()
        if (replaced := gone(NAME, self._proc, process.key)) is not None:
            return replaced
        if isinstance(buffers.python, Missing) and isinstance(buffers.c, Missing) and buffers.c.reason in WHOLE:
            return buffers.c
        return Known(buffers)


def buffers_of(target: Target) -> Buffers:
    """Read what a process holds back; what is not certain is missing."""
    others = _writers(target)
    found = others.value if isinstance(others, Known) else ()
    return Buffers(
        python=_certain(lambda: _python(target, found), _python_texts),
        c=_certain(lambda: _c(target), _c_texts),
        unsearched=others if isinstance(others, Missing) else None,
    )


def _writers(target: Target) -> Reading[tuple[int, ...]]:
    """Look for every object of Python that buffers what is written; Missing where they cannot all be found."""
    try:
        return Known(_search(target))
    except UnknownLayoutError as error:
        return Missing(NAME, "unsupported", error.message)
    except (UnreadableError, SpentError, struct.error) as error:
        return Missing(NAME, "failed", str(error))
    except OSError as error:
        return missing(NAME, error, attach=True)


def _search(target: Target) -> tuple[int, ...]:
    found = find_interpreter(target.image, target.auxiliary, target.program)
    if found is None:
        return ()
    python = cpython(target.image, found)
    names = names_of(target.image, python, find_sys(target.image, python, DataRanges(target.mappings))) or {}
    example, kinds = writer_types(target.image, python, names)
    if not example:
        raise UnknownLayoutError("sys has no text stream to search by", "")
    return objects_of(target.heap, target.mappings, kinds, example)


def _certain(
    look: Callable[[], Callable[[], tuple[T, ...]]],
    texts: Callable[[tuple[T, ...], tuple[T, ...]], tuple[HiddenText, ...] | None],
) -> Reading[tuple[HiddenText, ...]]:
    """Read what can be told apart from a torn reading, or say why not."""
    try:
        return _agreed(look(), texts)
    except UnknownLayoutError as error:
        return Missing(NAME, "unsupported", error.message)
    except (UnreadableError, SpentError) as error:
        return Missing(NAME, "failed", error.message)
    except OSError as error:
        return missing(NAME, error, attach=True)


def _agreed(
    measure: Callable[[], tuple[T, ...]],
    texts: Callable[[tuple[T, ...], tuple[T, ...]], tuple[HiddenText, ...] | None],
) -> Reading[tuple[HiddenText, ...]]:
    """Read until two readings in a row agree; a process that prints meanwhile makes a torn one possible."""
    failure = "its streams change faster than they can be read"
    before: tuple[T, ...] | None = None
    for _ in range(MOST_ATTEMPTS):
        try:
            now = measure()
        except UnknownLayoutError:
            raise
        except UnreadableError as error:
            before, failure = None, error.message
            continue
        except struct.error:
            before = None
            continue
        if before is not None and (agreed := texts(before, now)) is not None:
            return Known(agreed)
        before = now
    return Missing(NAME, "failed", failure)


def _c(target: Target) -> Callable[[], tuple[CStream, ...]]:
    """Find the C library's list of streams."""
    table = find_glibc(target.image, target.auxiliary)
    streams = symbol(target.image, table, LIST) if table else None
    if streams is None:
        raise UnknownLayoutError("its C library is not glibc, or is a part of the program itself", "")
    address = streams.address
    return lambda: c_streams(target.image, address)


def _c_texts(before: tuple[CStream, ...], now: tuple[CStream, ...]) -> tuple[HiddenText, ...] | None:
    """Return outputs that were used and files that hold text; a file that is being written is left out."""
    if [one for one in before if one.fd in C_NAMES] != [one for one in now if one.fd in C_NAMES]:
        return None
    kept = [one for one in now if one in before and (one.data or (one.used and one.fd in C_NAMES))]
    return tuple(_text(C_NAMES.get(one.fd, "file"), one.fd, one.data) for one in kept)


def _python(target: Target, others: tuple[int, ...]) -> Callable[[], tuple[PythonStream, ...]]:
    """Find CPython and its sys module; without one there is nothing to read."""
    found = find_interpreter(target.image, target.auxiliary, target.program)
    if found is None:
        return tuple
    python = cpython(target.image, found)
    address = find_sys(target.image, python, DataRanges(target.mappings))

    def measure() -> tuple[PythonStream, ...]:
        names = names_of(target.image, python, address)
        if names is None:
            raise UnreadableError("the sys module changed while it was read", "")
        return python_streams(target.image, python, names, others)

    return measure


def _python_texts(before: tuple[PythonStream, ...], now: tuple[PythonStream, ...]) -> tuple[HiddenText, ...] | None:
    """Return the streams of sys and files that hold text; a file that is being written is left out."""
    own = {1, 2} | {one.fd for one in (*before, *now) if one.stream != "file"}
    if [one for one in before if one.fd in own] != [one for one in now if one.fd in own]:
        return None
    kept = [one for one in now if one.fd in own or (one.data and one in before)]
    return tuple(_text(one.stream, one.fd, one.data, one.replaced_by, one.cut_bytes) for one in kept)


def _text(
    stream: Literal["stdout", "stderr", "c-stdout", "c-stderr", "file"],
    fd: int,
    data: bytes,
    replaced_by: str = "",
    cut_bytes: int = 0,
) -> HiddenText:
    tail = data.decode("utf-8", "replace")[-TAIL_CHARACTERS:]
    return HiddenText(stream=stream, fd=fd, size_bytes=cut_bytes + len(data), tail=tail, replaced_by=replaced_by)


def open_session(context: Context) -> Session:
    """Start reading a launch."""
    return BuffersSession(context.proc)


def check(proc: Path) -> Reading[str]:
    """Say whether memory can be read here."""
    memory = ProcessMemory(int(read(f"{proc}/self/stat").split()[0]), proc)
    try:
        memory.read(parse_maps(read_table(f"{proc}/self/maps"))[0].start, 1)
    except OSError as error:
        return missing(NAME, error, attach=True)
    except UnreadableError as error:
        return Missing(NAME, "failed", error.message)
    finally:
        memory.close()
    return Known("text not yet written by glibc's and CPython's streams; needs the right to trace the process")


PROBE = Probe(
    name=NAME,
    title="text that was printed and has not left the process",
    open=open_session,
    check=check,
    every=DENSE_EVERY,
    background=True,
    deadline_s=5.0,
    reads=("/proc/PID/maps", "/proc/PID/auxv", "the memory of streams, by process_vm_readv or /proc/PID/mem"),
)
