"""Finds the Python interpreter in a process and lists its threads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hangdoc.cpython.layouts import LAYOUTS, THREAD_NEXT, Layout
from hangdoc.glibc.descriptor import TID_OFFSET, tid_of
from hangdoc.glibc.locks import Crew
from hangdoc.memory.elf import exports, symbol
from hangdoc.memory.image import Image, UnreadableError, u32, u64
from hangdoc.procfs.maps import Mapping

MOST_INTERPRETERS, MOST_THREADS = 64, 20_000
"""Bounds on lists that the target may have made endless; arbitrary."""
PYTHON_FILE = re.compile(r"(?:^|/)(?:lib)?python(?:3(?:\.(\d{1,2}))?)?(t?)[^/]*$")
FREE_THREADED_AT = 16
"""_PyRuntime.debug_offsets.free_threaded, since 3.13."""


@dataclass(frozen=True)
class Runtime:
    """An interpreter whose layout is known. address: of _PyRuntime."""

    address: int
    layout: Layout
    minor: int


@dataclass(frozen=True)
class PythonThread:
    """A thread with a PyThreadState. tid: in the target's own numbers; ident: pthread_self(); frame: 0 when none."""

    tid: int
    ident: int
    frame: int


def find_runtime(image: Image, mappings: Sequence[Mapping], executable: str) -> Runtime | str | None:
    """Return the interpreter; a string says why one that is there cannot be read; None: there is none.

    _PyRuntime is exported by the program or by libpython; Py_Version, since 3.11, says which version it is, and before
    that the name of the program or the library.
    """
    refused: str | None = None
    for mapping in _candidates(mappings, executable):
        try:
            found = exports(image, mapping.start)
            address = symbol(image, found, "_PyRuntime")
            if address is None:
                continue
            version = symbol(image, found, "Py_Version")
            minor = u32(image, version) >> 16 & 0xFF if version else _named_version(mapping.path)
            free = minor >= 13 and u64(image, address + FREE_THREADED_AT) != 0
        except UnreadableError:
            continue
        if minor in LAYOUTS and not free:
            return Runtime(address, LAYOUTS[minor], minor)
        refused = f"CPython 3.{minor}{' without GIL' if free else ''}: its layout is not known to hangdoc"
    return refused


def _candidates(mappings: Sequence[Mapping], executable: str) -> Iterator[Mapping]:
    seen = set()
    for mapping in mappings:
        if not mapping.inode or mapping.offset or mapping.path in seen:
            continue
        path = mapping.path.removesuffix(" (deleted)")
        if path == executable or PYTHON_FILE.search(path):
            seen.add(mapping.path)
            yield mapping


def _named_version(path: str) -> int:
    found = PYTHON_FILE.search(path.removesuffix(" (deleted)"))
    return int(found[1]) if found and found[1] else 0


def python_threads(image: Image, runtime: Runtime, crew: Crew) -> tuple[PythonThread, ...]:
    """List the threads of all interpreters that are alive; one that is just being made or ended may be left out."""
    layout = runtime.layout
    found = []
    for interpreter in _chain(image, runtime.address + layout.interpreters, layout.next_interpreter, MOST_INTERPRETERS):
        for state in _chain(image, interpreter + layout.threads, THREAD_NEXT, MOST_THREADS):
            thread = _thread(image, state, layout, crew)
            if thread is not None:
                found.append(thread)
    return tuple(found)


def _chain(image: Image, first: int, following: int, most: int) -> Iterator[int]:
    """Follow a list; the list changes while it is read, so that it may break off or lead back."""
    seen: set[int] = set()
    place = first
    while len(seen) < most:
        try:
            address = u64(image, place)
        except UnreadableError:
            return
        if not address or address in seen:
            return
        seen.add(address)
        yield address
        place = address + following


STATE_BYTES = 192
"""Up to the end of thread_id and native_thread_id."""


def _thread(image: Image, state: int, layout: Layout, crew: Crew) -> PythonThread | None:
    try:
        data = image.read(state, STATE_BYTES)
        ident = int.from_bytes(data[layout.thread : layout.thread + 8], "little")
        if layout.native:
            tid: int | None = int.from_bytes(data[layout.native : layout.native + 8], "little")
        elif crew.machine in TID_OFFSET:
            tid = tid_of(image, ident, crew.machine)
        else:
            return None
        frame = int.from_bytes(data[layout.to_frame[0] : layout.to_frame[0] + 8], "little")
        for offset in layout.to_frame[1:]:
            frame = u64(image, frame + offset)
    except UnreadableError:
        return None
    return PythonThread(tid, ident, frame) if tid in crew.tids and tid is not None else None
