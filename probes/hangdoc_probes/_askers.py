"""Finds the threads whose Python frames ask for a lock file, and the texts among the variables of these frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hangdoc.cpython.frames import Frame, Reader
from hangdoc.cpython.runtime import PythonThread, find_runtime, python_threads
from hangdoc.glibc.locks import Crew
from hangdoc.memory.bounded import Bounded, SpentError
from hangdoc.memory.image import UnknownLayoutError, UnreadableError, u64, words
from hangdoc.memory.process import ProcessMemory
from hangdoc.model.lock_file import LockFileKind
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc_probes._reading import missing, program_file, read
from hangdoc_probes._tids import Tids

NAME = "lock-files"
MOST_BYTES, MOST_READS = 8 << 20, 60_000
"""Read of one process in one look; arbitrary: ten times what 200 threads of 20 frames take."""
MOST_LOCALS = 100
"""Variables of one frame; arbitrary."""
CALLERS = 3
"""Frames above the one that asks whose variables are read too: FileBaton.wait has no path of its own, the function
that called it has the directory (_jit_compile, torch/utils/cpp_extension.py)."""
LEAST_POINTER = 1 << 16
TAG_BITS = 7
"""Python 3.14 marks references in the lowest bits."""

BATON = ("torch/utils/file_baton.py", "wait")
FILELOCKS = (
    ("filelock/_api.py", "acquire"),
    ("filelock/_core/_acquire.py", "_poll_until_acquired"),
    ("tvm_ffi/utils/lockfile.py", "blocking_acquire"),
)
"""Where filelock polls, up to 3.x and since 4.0, and where tvm_ffi does, with which SGLang builds kernels."""
SOFT_LOCK = "SoftFileLock"


@dataclass(frozen=True)
class Asking:
    """A thread that asks for a lock file. texts: of the variables around it, nearest first; one of them leads to it."""

    tid: int
    kind: LockFileKind
    texts: tuple[str, ...]


def askers(proc: Path, key: ProcessKey, machine: str) -> Reading[tuple[Asking, ...]]:
    """Return the threads of a process that ask for a lock file; none in a process without Python."""
    memory = ProcessMemory(key.pid, proc)
    try:
        return Known(_askers(proc, key.pid, machine, Bounded(memory, MOST_BYTES, MOST_READS)))
    except PermissionError as error:
        return missing(NAME, error, attach=True)
    except UnknownLayoutError as error:
        return Missing(NAME, "unsupported", error.message)
    except (UnreadableError, SpentError) as error:
        return Missing(NAME, "failed", error.message)
    finally:
        memory.close()


def _askers(proc: Path, pid: int, machine: str, memory: Bounded) -> tuple[Asking, ...]:
    runtime = find_runtime(memory, read(f"{proc}/{pid}/auxv"), program_file(proc, pid))
    if runtime is None:
        return ()
    tids = Tids(proc, pid)
    reader = Reader(memory, runtime.layout)
    threads = python_threads(memory, runtime, Crew(tids.inner, machine))
    found = ((tids.outer.get(thread.tid), _asking(reader, thread)) for thread in threads)
    return tuple(Asking(tid, one.kind, one.texts) for tid, one in found if tid is not None and one is not None)


def _asking(reader: Reader, thread: PythonThread) -> Asking | None:
    frames = list(reader.frames(thread.frame)) if thread.frame else []
    for at, frame in enumerate(frames):
        kind = _kind(reader, frame)
        if kind is not None:
            around = frames[at : at + 1 + CALLERS]
            texts = (*_own_texts(reader, frame), *(text for one in around for text in _texts(reader, one)))
            return Asking(thread.tid, kind, texts)
    return None


def _kind(reader: Reader, frame: Frame) -> LockFileKind | None:
    """Return what kind of lock a frame asks for, None when it asks for none."""
    if _is(frame, *BATON):
        return "existence"
    if any(_is(frame, *place) for place in FILELOCKS):
        return "existence" if _is_soft(reader, frame) else "flock"
    return None


def _is(frame: Frame, file: str, function: str) -> bool:
    return frame.code.name == function and frame.code.filename.endswith("/" + file)


def _is_soft(reader: Reader, frame: Frame) -> bool:
    """Tell whether the first variable, self, is a lock by a file's mere existence."""
    try:
        return reader.type_name(u64(reader.image, frame.locals) & ~TAG_BITS).rpartition(".")[2] == SOFT_LOCK
    except UnreadableError:
        return False


def _own_texts(reader: Reader, frame: Frame) -> Iterator[str]:
    """Yield the texts among the attributes of self, the first variable: most locks know their path."""
    try:
        tables = list(reader.attributes(u64(reader.image, frame.locals) & ~TAG_BITS))
    except UnreadableError:
        return
    for table in tables:
        yield from _texts_in(reader, words(table[: len(table) // 8 * 8]))


def _texts(reader: Reader, frame: Frame) -> Iterator[str]:
    count = min(frame.code.locals or (frame.stack - frame.locals) // 8, MOST_LOCALS)
    if count > 0:
        yield from _texts_in(reader, words(reader.image.read(frame.locals, 8 * count)))


def _texts_in(reader: Reader, slots: Sequence[int]) -> Iterator[str]:
    for slot in slots:
        try:
            text = reader.text(slot & ~TAG_BITS) if slot >= LEAST_POINTER else ""
        except UnreadableError:
            continue
        if "/" in text:
            yield text
