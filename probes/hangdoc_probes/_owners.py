"""Puts the readings of one process's locks together: each address once, in the numbers that /proc uses."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from hangdoc.cpython.gil import GilState, gil_at, gil_waited_for
from hangdoc.cpython.locks import PythonLocks
from hangdoc.cpython.runtime import find_runtime
from hangdoc.glibc.library import CALLER, find_glibc, is_file_of_locks
from hangdoc.glibc.locks import AFTER_BYTES, BEFORE_BYTES, Around, Crew, Owned, recognise
from hangdoc.memory.bounded import Bounded, SpentError
from hangdoc.memory.elf import Exports, symbol
from hangdoc.memory.image import UnknownLayoutError, UnreadableError
from hangdoc.memory.process import ProcessMemory
from hangdoc.model.link import LinkEnd
from hangdoc.model.locks import FutexWait, Gil, LockKind, Locks, PythonLock
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.procfs.maps import Mapping, mapping_at, may_be_opened, parse_maps, shared_key
from hangdoc.procfs.syscalls import FutexCall
from hangdoc_probes._futexes import FutexWaits, still_waits
from hangdoc_probes._reading import program_file, read, read_table
from hangdoc_probes._sharers import Outsiders, is_linked, owners, sees_all
from hangdoc_probes._tids import Tids

NAME = "locks"
MOST_BYTES, MOST_READS = 64 << 20, 500_000
"""Read of one process in one look; arbitrary: five times what 4,096 threads of 20 frames each take."""


@dataclass(frozen=True)
class Read:
    """One address: what is there, and what the threads that wait for it have in common."""

    call: FutexCall
    owned: Owned
    gil: GilState | None


class Scene:
    """One process while its locks are read. gil: where its interpreter lock is, 0 when that is not known."""

    def __init__(self, proc: Path, pid: int, machine: str, gil: int, outsiders: Outsiders) -> None:
        self.proc, self.pid, self.machine, self.gil = proc, pid, machine, gil
        self.outsiders = outsiders
        self._memory = ProcessMemory(pid, proc)
        self.memory = Bounded(self._memory, MOST_BYTES, MOST_READS)

    @cached_property
    def mappings(self) -> tuple[Mapping, ...]:
        """The address space, read only where it is needed."""
        return parse_maps(read_table(f"{self.proc}/{self.pid}/maps"))

    @cached_property
    def glibc(self) -> Exports | None:
        """The C library; None where the locks of its kind are a part of the program, or there are none."""
        try:
            return find_glibc(self.memory, self.auxiliary)
        except UnreadableError:
            return None

    def is_foreign(self, place: int) -> bool:
        """Tell whether a wait that goes on at this place is none of the C library's own."""
        if self.glibc is None:
            return False
        caller = symbol(self.memory, self.glibc, CALLER)
        mapping = mapping_at(self.mappings, place)
        if caller is None or mapping is None:
            return False
        through = caller.address <= place < caller.address + caller.size_bytes
        return through or not is_file_of_locks(mapping.path)

    @property
    def auxiliary(self) -> bytes:
        """What the kernel told the program when it started it."""
        return read(f"{self.proc}/{self.pid}/auxv")

    @property
    def executable(self) -> str:
        """The program's own file."""
        return program_file(self.proc, self.pid)

    def close(self) -> None:
        """Let go of the memory."""
        self._memory.close()


def read_locks(scene: Scene, waits: FutexWaits) -> Locks:
    """Read every lock that a thread waits for."""
    tids = Tids(scene.proc, scene.pid, waits.tids)
    crew = Crew(tids.inner, scene.machine, tids.inner_of(scene.pid))
    by_call = defaultdict(list)
    for tid, call in waits.calls.items():
        by_call[call].append(tid)
    calls = list(by_call)
    found = {call: _read_one(scene, call, data, crew) for call, data in zip(calls, _around(scene, calls), strict=True)}
    for call, waiting in by_call.items():
        owner = found[call].owned.owner
        told = isinstance(owner, Known) and owner.value is not None and found[call].gil is None
        if told and any(scene.is_foreign(waits.places[tid]) for tid in waiting):
            found[call] = Read(call, FOREIGN, None)
    futexes = [one for call, waiting in by_call.items() for one in _waits(scene, found[call], waiting, tids)]
    gil = _gil(scene, found, by_call, crew, tids)
    return Locks(
        futexes=tuple(sorted(futexes, key=lambda one: one.tid)),
        gil=gil,
        python=_python(scene, waits, found, crew, tids),
        complete=waits.complete,
    )


FOREIGN = Owned("unknown", Missing(NAME, "unsupported", "a lock that is not the C library's: its owner is not known"))


def _around(scene: Scene, calls: list[FutexCall]) -> list[bytes | None]:
    size = BEFORE_BYTES + AFTER_BYTES
    return scene.memory.read_many([(call.address - BEFORE_BYTES, size) for call in calls])


def _read_one(scene: Scene, call: FutexCall, data: bytes | None, crew: Crew) -> Read:
    try:
        around = Around(scene.memory, call.address, data)
        gil = gil_waited_for(around, call, crew)
        if gil is not None:
            return Read(call, Owned("gil", Known(gil.holder_tid)), gil)
        return Read(call, recognise(around, call, crew), None)
    except UnreadableError:
        return Read(call, Owned("unknown", Missing(NAME, "gone", "the address is not mapped any more")), None)


def _waits(scene: Scene, one: Read, waiting: list[int], tids: Tids) -> list[FutexWait]:
    """Return the record of each thread that waits for one address, with an owner only if one of them still does."""
    call, kind, owner = one.call, one.owned.kind, one.owned.owner
    key = "" if call.private else shared_key(scene.mappings, call.address)
    pid, alive = 0, True
    held = owner.value if isinstance(owner, Known) else None
    if held is not None:
        if kind != "gil" and not still_waits(scene.proc, scene.pid, waiting[0], call, scene.machine):
            owner = Missing(NAME, "gone", "the thread had the lock before its owner could be told")
        else:
            owner, pid, alive = _outer(scene, held, kind, tids) if not key else _sharer(scene, held, kind, key)
    others = scene.outsiders.of(key) if key else NOBODY
    mapping = mapping_at(scene.mappings, call.address) if key else None
    by_name = mapping is not None and (may_be_opened(mapping.path) or is_linked(scene.proc, scene.pid, mapping))
    return [FutexWait(tid, call.address, key, kind, owner, alive, pid, others, by_name) for tid in waiting]


NOBODY: Reading[tuple[LinkEnd, ...]] = Known(())
"""Who else has memory that only one process has."""


MAY_OUTLIVE: frozenset[LockKind] = frozenset({"mutex"})
"""Locks that stay held when their owner ends; the kernel itself hands on the other kinds."""

Told: TypeAlias = tuple[Reading[int | None], int, bool]
"""An owner in /proc's numbers, the process it is of (0: the waiter's own), and whether it is alive."""


def _outer(scene: Scene, inner: int, kind: LockKind, tids: Tids) -> Told:
    """Tell who holds a lock of one process: a thread of it, or one that it does not have any more, or never had."""
    tid = tids.outer.get(inner)
    if tid is not None:
        return Known(tid), 0, True
    if kind not in MAY_OUTLIVE:
        return Missing(NAME, "gone", "the owner ended while it was read"), 0, True
    if scene.glibc is None:
        return (
            Missing(NAME, "unsupported", "the owner is no thread of this process: it may be no lock of glibc"),
            0,
            True,
        )
    return Known(inner), 0, False


def _sharer(scene: Scene, inner: int, kind: LockKind, key: str) -> Told:
    """Tell who holds a lock that processes share: the one thread of this number among all that have the memory."""
    found = owners(scene.proc, inner, key)
    if found.unread is not None:
        return found.unread, 0, True
    if len(found.threads) > 1:
        return Missing(NAME, "unsupported", f"threads of different PID namespaces have the number {inner}"), 0, True
    if found.threads:
        pid, tid = found.threads[0]
        return Known(tid), 0 if pid == scene.pid else pid, True
    if kind not in MAY_OUTLIVE:
        return Missing(NAME, "gone", "the owner ended while it was read"), 0, True
    if not sees_all(scene.proc):
        return Missing(NAME, "unsupported", f"the owner {inner} may be in another PID namespace"), 0, True
    return Known(inner), 0, False


def _gil(
    scene: Scene, found: dict[FutexCall, Read], by_call: dict[FutexCall, list[int]], crew: Crew, tids: Tids
) -> Reading[Gil | None]:
    """Read the interpreter lock: the one most threads wait for, or that known from an earlier round."""
    waiting: defaultdict[int, list[int]] = defaultdict(list)
    states = {}
    for call, one in found.items():
        if one.gil is not None:
            waiting[one.gil.address] += by_call[call]
            states[one.gil.address] = one.gil
    if waiting:
        scene.gil = max(waiting, key=lambda address: len(waiting[address]))
    state = states.get(scene.gil) or (gil_at(scene.memory, scene.gil, crew) if scene.gil else None)
    if state is None:
        return Known(None)
    holder = tids.outer.get(state.holder_tid) if state.holder_tid is not None else None
    return Known(Gil(holder, state.locked, state.switches, tuple(sorted(waiting[state.address]))))


def _python(
    scene: Scene, waits: FutexWaits, found: dict[FutexCall, Read], crew: Crew, tids: Tids
) -> Reading[tuple[PythonLock, ...]]:
    semaphores = {tid: call.address for tid, call in waits.calls.items() if found[call].owned.kind == "semaphore"}
    if not semaphores:
        return Known(())
    try:
        return _held(scene, waits, semaphores, crew, tids)
    except UnknownLayoutError as error:
        return Missing(NAME, "unsupported", error.message)
    except (UnreadableError, SpentError) as error:
        return Missing(NAME, "failed", error.message)


def _held(
    scene: Scene, waits: FutexWaits, semaphores: dict[int, int], crew: Crew, tids: Tids
) -> Reading[tuple[PythonLock, ...]]:
    runtime = find_runtime(scene.memory, scene.auxiliary, scene.executable)
    if runtime is None:
        return Known(())
    inner = {tids.inner_of(tid): address for tid, address in semaphores.items()}
    locks = PythonLocks(scene.memory, runtime, crew).held(inner)
    first = {lock.address: tids.outer[lock.waiting_tid] for lock in reversed(locks)}
    still = {
        address
        for address, tid in first.items()
        if still_waits(scene.proc, scene.pid, tid, waits.calls[tid], scene.machine)
    }
    return Known(tuple(_translated(lock, tids) for lock in locks if lock.address in still))


def _translated(lock: PythonLock, tids: Tids) -> PythonLock:
    holder = None if lock.holder_tid is None else tids.outer[lock.holder_tid]
    return PythonLock(tids.outer[lock.waiting_tid], holder, lock.address, lock.through, lock.sure)
