"""Finds the Python interpreter in a process and lists its threads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hangdoc.cpython.layouts import LAYOUTS, THREAD_NEXT, Layout
from hangdoc.glibc.descriptor import tid_of
from hangdoc.glibc.locks import Crew
from hangdoc.memory.elf import Exports, Symbol, exports, loaded, symbol
from hangdoc.memory.image import Image, UnknownLayoutError, UnreadableError, u32, u64, words

MOST_INTERPRETERS, MOST_THREADS = 64, 20_000
"""Bounds on lists that the target may have made endless; arbitrary."""
PYTHON_FILE = re.compile(r"(?:^|/)(?:lib)?python(?:3(?:\.(\d{1,2}))?)?(t?)[^/]*$")
FREE_THREADED_AT = 16
"""_PyRuntime.debug_offsets.free_threaded, since 3.13."""
HIDDEN = "this python does not export where its objects are"


@dataclass(frozen=True)
class Interpreter:
    """The file that an interpreter is in. runtime: _PyRuntime; path: as the loader knows the file."""

    exports: Exports
    runtime: Symbol
    path: str


@dataclass(frozen=True)
class Runtime:
    """An interpreter whose layout is known. address: of _PyRuntime."""

    address: int
    layout: Layout
    minor: int


@dataclass(frozen=True)
class PythonThread:
    """A thread with a PyThreadState. tid: in the target's own numbers; ident: pthread_self(); frame: 0 when none.

    state: address of its PyThreadState.
    """

    tid: int
    ident: int
    frame: int
    state: int = 0


def find_interpreter(image: Image, auxiliary: bytes, executable: str) -> Interpreter | None:
    """Return the interpreter of a process; None: there is none, as far as the names of its libraries tell.

    _PyRuntime is exported by the program or by libpython. auxiliary: /proc/PID/auxv.
    """
    expected = PYTHON_FILE.search(executable)
    for number, one in enumerate(loaded(image, auxiliary)):
        path = one.name or executable
        named = PYTHON_FILE.search(path)
        if number and not named:
            continue
        expected = expected or named
        found = exports(image, one)
        runtime = symbol(image, found, "_PyRuntime") if found else None
        if found and runtime:
            return Interpreter(found, runtime, path)
    if expected:
        raise UnknownLayoutError(HIDDEN, "")
    return None


def exported_version(image: Image, found: Exports) -> tuple[int, int] | None:
    """Return what Py_Version says (Include/cpython/pylifecycle.h): (3, 12); None before 3.11, which has none."""
    packed = symbol(image, found, "Py_Version")
    if packed is None:
        return None
    number = u32(image, packed.address)
    return number >> 24, number >> 16 & 0xFF


def find_runtime(image: Image, auxiliary: bytes, executable: str) -> Runtime | None:
    """Return the interpreter if its layout is known; UnknownLayoutError where it is not; None: there is none.

    Before 3.11 the name of the program or the library tells the version.
    """
    found = find_interpreter(image, auxiliary, executable)
    if found is None:
        return None
    version = exported_version(image, found.exports)
    minor = version[1] if version else _named_version(found.path)
    address = found.runtime.address
    free = minor >= 13 and u64(image, address + FREE_THREADED_AT) != 0
    if minor in LAYOUTS and not free:
        return Runtime(address, LAYOUTS[minor], minor)
    named = f"CPython 3.{minor}{' without GIL' if free else ''}"
    raise UnknownLayoutError(f"{named}: its layout is not known to hangdoc", "")


def _named_version(path: str) -> int:
    found = PYTHON_FILE.search(path.removesuffix(" (deleted)"))
    return int(found[1]) if found and found[1] else 0


def python_threads(image: Image, runtime: Runtime, crew: Crew) -> tuple[PythonThread, ...]:
    """List the threads of all interpreters that are alive; one that is just being made or ended may be left out."""
    layout = runtime.layout
    states = [
        state for interpreter in _interpreters(image, runtime) for state in _states(image, interpreter + layout.threads)
    ]
    threads = [_numbers(image, state, layout, crew) for _, state in states]
    frames = [state[layout.to_frame[0] // 8] for _, state in states]
    for offset in layout.to_frame[1:]:
        read = image.read_many([(address + offset, 8) for address in frames])
        frames = [int.from_bytes(data or b"", "little") for data in read]
    return tuple(
        PythonThread(tid, ident, frame, address)
        for (tid, ident), frame, (address, _) in zip(threads, frames, states, strict=True)
        if tid is not None and tid in crew.tids
    )


def _interpreters(image: Image, runtime: Runtime) -> Iterator[int]:
    seen: set[int] = set()
    place = runtime.address + runtime.layout.interpreters
    while len(seen) < MOST_INTERPRETERS:
        try:
            address = u64(image, place)
        except UnreadableError:
            return
        if not address or address in seen:
            return
        seen.add(address)
        yield address
        place = address + runtime.layout.next_interpreter


def _states(image: Image, place: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the PyThreadStates of a list: address and words. It changes meanwhile: it may break off or lead back."""
    seen: set[int] = set()
    try:
        address = u64(image, place)
        while address and address not in seen and len(seen) < MOST_THREADS:
            seen.add(address)
            state = words(image.read(address, STATE_BYTES))
            yield address, state
            address = state[THREAD_NEXT // 8]
    except UnreadableError:
        return


STATE_BYTES = 192
"""Up to the end of thread_id and native_thread_id."""


def _numbers(image: Image, state: tuple[int, ...], layout: Layout, crew: Crew) -> tuple[int | None, int]:
    ident = state[layout.thread // 8]
    if layout.native:
        return state[layout.native // 8], ident
    return tid_of(image, ident, crew.machine), ident
