"""Memory of the GPUs before and after: whether what the launch had came back, and who has it if not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hangdoc import discovery
from hangdoc.ending.records import Before, GpuHolder, GpuMemory, GpuProof, GpuReading
from hangdoc.launch.complaints import shown
from hangdoc.launch.table import read_entry
from hangdoc.model.gpu import Gpu, Gpus
from hangdoc.model.process import Launch
from hangdoc.model.reading import Known, Reading
from hangdoc.model.snapshot import Payload
from hangdoc.report.words import bytes_text
from hangdoc.sampling.probe import Context, Round

PROBE = "gpu"
POLL_S = 0.2
"""From one reading to the next while memory has not come back: an H200 took 0.14 to 0.41 s. Arbitrary."""

SLACK_BYTES = 64 << 20
"""By how much less than the members had the use may fall: the driver keeps some for itself. Arbitrary: far below the
smallest CUDA context (some 300 MiB)."""

Reader = Callable[[], GpuReading]


@contextmanager
def reader(launch: Launch, proc: Path, members: frozenset[int]) -> Iterator[Reader]:
    """Yield what reads all GPUs through the gpu probe, which never waits longer than its own deadline."""
    found = [probe for probe in discovery.probes() if probe.name == PROBE]
    if not found:
        yield lambda: GpuReading(unread="the gpu probe is not installed", remedy="reinstall hangdoc")
        return
    session = found[0].open(Context(launch=launch, intern=lambda _: 0, proc=proc))
    try:

        def read() -> GpuReading:
            now = Round(0, time.clock_gettime_ns(time.CLOCK_BOOTTIME), (), thorough=True)
            return _reading(next(iter(session.take(now))).reading, proc, members)

        yield read
    finally:
        session.close()


def _reading(reading: Reading[Payload], proc: Path, members: frozenset[int]) -> GpuReading:
    if not isinstance(reading, Known):
        return GpuReading(unread=reading.detail or reading.reason, remedy=reading.remedy)
    assert isinstance(reading.value, Gpus)
    return GpuReading(tuple(_device(gpu, proc, members) for gpu in reading.value.devices))


def _device(gpu: Gpu, proc: Path, members: frozenset[int]) -> GpuMemory:
    holders: tuple[GpuHolder, ...] | None = None
    if isinstance(gpu.processes, Known):
        holders = tuple(
            GpuHolder(
                one.pid,
                one.used_bytes.value if isinstance(one.used_bytes, Known) else None,
                _title(proc, one.pid),
                one.pid in members,
            )
            for one in gpu.processes.value
        )
    used = gpu.used_bytes.value if isinstance(gpu.used_bytes, Known) else None
    return GpuMemory(gpu.index, gpu.name, used, holders)


def _title(proc: Path, pid: int) -> str:
    entry = read_entry(proc, pid)
    return shown(entry.title) if entry is not None else ""


def involved(before: Before) -> dict[int, bool]:
    """Return the devices on which the launch may have memory: by index, and whether NVML named a member there.

    NVML's pids are those of the host where its driver knows no namespaces: then the device files that members have open
    say which devices are meant.
    """
    named = {one.index: any(holder.member for holder in one.holders or ()) for one in before.gpus.devices}
    opened = {int(path.removeprefix("/dev/nvidia")) for paths in before.opened.values() for path in paths}
    return {index: is_named for index, is_named in named.items() if is_named or index in opened}


def holdings(before: Before, pid: int) -> tuple[str, ...]:
    """Say in clauses what a member has that others wait for: GPUs, memory on them, ports."""
    devices = [f"has {path} open" for path in before.opened.get(pid, ())]
    for gpu in before.gpus.devices:
        for one in gpu.holders or ():
            if one.pid == pid and one.member:
                amount = "memory" if one.used_bytes is None else bytes_text(one.used_bytes)
                devices.append(f"has {amount} on GPU {gpu.index}")
    listened = before.listeners.get(pid, ())
    more = f" and {len(listened) - 1} more" if len(listened) > 1 else ""
    return (*devices, *([f"listens on port {listened[0]}{more}"] if listened else []))


def was_used(before: Before) -> bool:
    """Say whether the launch had anything to do with a GPU: a member had one open, or NVML named one."""
    return bool(before.opened) or bool(involved(before))


def wait_for_memory(before: Before, read: Reader, timeout_s: float) -> tuple[tuple[GpuProof, ...], GpuReading]:
    """Read until every device has its memory back, or the time is over; returns the last comparison and reading."""
    until_s = time.monotonic() + timeout_s
    while True:
        after = read()
        proofs = compare(before, after)
        is_back = not after.unread and all(one.returned for one in proofs)
        if is_back or after.unread or time.monotonic() + POLL_S > until_s:
            return proofs, after
        time.sleep(POLL_S)


def compare(before: Before, after: GpuReading) -> tuple[GpuProof, ...]:
    """Compare each device that the launch may have used."""
    wanted = involved(before)
    now = {one.index: one for one in after.devices}
    proofs = (
        _proof(one, now[one.index], is_named=wanted[one.index])
        if one.index in now
        else GpuProof(one.index, one.name, one.used_bytes, None, None, (), "not listed any more")
        for one in before.gpus.devices
        if one.index in wanted
    )
    return tuple(proofs)


def _proof(was: GpuMemory, now: GpuMemory, *, is_named: bool) -> GpuProof:
    """Judge one device.

    Rule: the memory is back when no process is listed that was the launch's, and the use fell by what they had (others
    may have taken or freed some meanwhile, which is taken into account as far as it is told). Without members in NVML's
    list, those count as the launch's that left the list with it.
    """
    left = {one.pid: one for one in now.holders or ()}
    ours = {one.pid: one for one in was.holders or () if one.member or (not is_named and one.pid not in left)}
    still = tuple(one for pid, one in left.items() if pid in ours)
    others = tuple(one for pid, one in left.items() if pid not in ours)
    if was.used_bytes is None or now.used_bytes is None or now.holders is None:
        return _judged(was, now, None, others, "not read")
    if still:
        return _judged(was, now, False, still, f"{_names(still)} still has memory there")
    expected = _known_sum(ours)
    if expected is None or not ours:
        fell = was.used_bytes - now.used_bytes
        says = f"{bytes_text(fell)} less in use" if fell > 0 else "not less in use"
        return _judged(was, now, None, others, f"{says}; how much the launch had is not told")
    grown = _growth(was, others)
    missing = expected - SLACK_BYTES - (was.used_bytes - now.used_bytes + grown)
    if missing <= 0:
        return _judged(was, now, True, others, "came back")
    holder = f"{_names(others)} has memory there" if others else "no visible process has it"
    return _judged(was, now, False, others, f"{bytes_text(missing + SLACK_BYTES)} did not come back; {holder}")


def _judged(
    was: GpuMemory, now: GpuMemory, returned: bool | None, holders: tuple[GpuHolder, ...], says: str
) -> GpuProof:
    return GpuProof(was.index, was.name, was.used_bytes, now.used_bytes, returned, holders, says)


def _known_sum(holders: Mapping[int, GpuHolder]) -> int | None:
    amounts = [one.used_bytes for one in holders.values()]
    return None if None in amounts else sum(one for one in amounts if one is not None)


def _growth(was: GpuMemory, others: tuple[GpuHolder, ...]) -> int:
    """Return by how much processes that have nothing to do with the launch use more now, as far as both are told.

    Somebody new who is not visible may be the launch's own under another number: what he has does not explain anything.
    """
    before = {one.pid: one.used_bytes for one in was.holders or ()}
    told = ((one.used_bytes, before.get(one.pid, 0)) for one in others if one.title or one.pid in before)
    return sum(max(0, now - then) for now, then in told if now is not None and then is not None)


def _names(holders: tuple[GpuHolder, ...]) -> str:
    return ", ".join(f"pid {one.pid} ({one.title or 'not visible here: outside this container?'})" for one in holders)
