"""Every reading that a diagnosis lacks, so that no null in it stands without its reason."""

from __future__ import annotations

from itertools import pairwise

from hangdoc.features.features import Features
from hangdoc.features.index import Index
from hangdoc.features.outputs import OutputFile
from hangdoc.model.diagnosis import MissingReading
from hangdoc.model.gpu import Gpu
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known, Missing
from hangdoc.trace.records import Trace

UNTIL_WHEN = Missing("log", "not-in-input", "nothing tells until when the log stayed like this", "add --now TIME")


def missing_readings(index: Index, seen: Features) -> tuple[MissingReading, ...]:
    """Return every missing reading once, sorted by probe and process."""
    found = list(index.failures())
    if isinstance(seen.launch.engine_version, Missing):
        found.append((None, seen.launch.engine_version))
    if isinstance(seen.gpus, Missing):
        found.append((None, seen.gpus))
    else:
        found += [(None, lack) for gpu in seen.gpus.value.devices for lack in _of_gpu(gpu)]
    if isinstance(seen.log, Known) and not seen.log.value.until_known:
        found.append((None, UNTIL_WHEN))
    for member in seen.members.values():
        readings: list[object] = [member.motion, member.flow]
        if not isinstance(member.motion, Missing):
            readings += [member.motion.value.threads, member.motion.value.cpu_ratio]
        if not isinstance(member.flow, Missing):
            readings += [member.flow.value.io_bytes, member.flow.value.tcp_bytes]
        if isinstance(member.links, Missing) and member.links.reason != "not-taken":
            readings.append(member.links)
        if isinstance(member.locks, Known) and member.locks.value:
            newest = member.locks.value[-1][1]
            readings += [newest.gil, newest.python]
        found += [(member.key, reading) for reading in readings if isinstance(reading, Missing)]
        found += [(member.key, refused) for refused in _refused_calls(seen, member.key)]
    found += [(output.process.key, lack) for output in seen.outputs for lack in _lacks(output)]
    rows = {_row(process, missing) for process, missing in found}
    return tuple(sorted(rows, key=lambda row: (row.probe, row.pid or 0, row.reason, row.detail)))


def _refused_calls(seen: Features, key: ProcessKey) -> list[Missing]:
    waits = seen.members[key].waits
    if isinstance(waits, Missing):
        return []
    return [thread.system_call for thread in waits.value[-1].threads if isinstance(thread.system_call, Missing)]


def _lacks(output: OutputFile) -> tuple[Missing, ...]:
    """Return what is not known of the text that an output waits for."""
    if isinstance(output.hidden, Missing):
        return (output.hidden,)
    found = output.hidden.value
    return (*found.lacks, *([found.tail] if isinstance(found.tail, Missing) else []))


def _of_gpu(gpu: Gpu) -> tuple[Missing, ...]:
    """Return what the document has no value for of a GPU."""
    users = gpu.processes.value if isinstance(gpu.processes, Known) else ()
    readings = (gpu.used_bytes, gpu.util_ratio, gpu.power_w, gpu.processes, *(user.used_bytes for user in users))
    return tuple(reading for reading in readings if isinstance(reading, Missing))


def _row(process: ProcessKey | None, missing: Missing) -> MissingReading:
    return MissingReading(
        probe=missing.probe,
        pid=None if process is None or process.pid < 0 else process.pid,
        reason=missing.reason,
        detail=missing.detail,
        remedy=missing.remedy,
    )


CUT = "the trace was cut after"


def lacks_of(trace: Trace) -> tuple[MissingReading, ...]:
    """Return what the trace itself lacks: rounds after a cut or amidst, and records of unknown kinds."""
    return (*_cut(trace), *_gaps(trace), *_skipped(trace))


def _cut(trace: Trace) -> tuple[MissingReading, ...]:
    if trace.complete:
        return ()
    detail = f"{CUT} {rounds_of(trace)}"
    remedy = "record again, or copy the whole file"
    return (MissingReading(probe="trace", pid=None, reason="not-taken", detail=detail, remedy=remedy),)


def _gaps(trace: Trace) -> tuple[MissingReading, ...]:
    """Return how many rounds were left out while recording; the first one may stand for all up to it."""
    numbers = [snapshot.index for snapshot in trace.snapshots]
    lost = sum(later - earlier - 1 for earlier, later in pairwise(numbers) if later > earlier)
    if not lost:
        return ()
    detail = f"{lost} rounds are not in it: the disk that it was recorded to was too slow"
    remedy = "record to a faster disk"
    return (MissingReading(probe="trace", pid=None, reason="not-taken", detail=detail, remedy=remedy),)


def rounds_of(trace: Trace) -> str:
    """Return "1 round" or "3 rounds"."""
    return "1 round" if len(trace.snapshots) == 1 else f"{len(trace.snapshots)} rounds"


def _skipped(trace: Trace) -> tuple[MissingReading, ...]:
    if not trace.skipped:
        return ()
    detail = f"{trace.skipped} records are of a kind that this hangdoc does not know"
    remedy = "update hangdoc: pipx upgrade hangdoc"
    return (MissingReading(probe="trace", pid=None, reason="unsupported", detail=detail, remedy=remedy),)
