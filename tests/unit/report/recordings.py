"""Recordings for the tests of the page and of the Markdown: golden ones, hostile ones, a launch of 64 ranks."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from hangdoc.model.gpu import Gpu, GpuProcess, Gpus
from hangdoc.model.process import Process
from hangdoc.model.reading import Known, Missing
from hangdoc.model.snapshot import Sample
from hangdoc.model.thread import CpuUse, ThreadClock
from hangdoc.observe.replay import read_trace
from hangdoc.report.material import Material, material
from hangdoc.report.page.page import page
from hangdoc.trace.records import Trace

GOLDEN = Path(__file__).parents[2] / "golden"

RANKS, THREADS = 64, 200


def golden(name: str) -> Trace:
    return read_trace(GOLDEN / f"{name}.hangtrace")


def many_ranks(ranks: int = RANKS, threads: int = THREADS) -> Trace:
    """A golden launch of two ranks, of which one never came, with the one that waits copied until there are so many.

    Each copy has its threads, and pollers and sleepers on top of them.
    """
    of = golden("absent-allreduce")
    model = next(one for one in of.snapshots[0].processes if one.rank == {"tp": 0})
    copies = [_copy(of, model, number, threads) for number in range(2, ranks)]
    shots = []
    for position, shot in enumerate(of.snapshots):
        more = [copy[position] for copy in copies]
        processes = sorted((*shot.processes, *(process for process, _ in more)), key=lambda one: one.key)
        samples = (*shot.samples, *(sample for _, found in more for sample in found))
        shots.append(msgspec.structs.replace(shot, processes=tuple(processes), samples=samples, tally={}))
    launch = msgspec.structs.replace(of.header.launch, settings=of.header.launch.settings | {"tp_size": str(ranks)})
    return msgspec.structs.replace(of, header=msgspec.structs.replace(of.header, launch=launch), snapshots=tuple(shots))


@cache
def many_ranks_page() -> tuple[Material, str]:
    """The page of that launch, which takes seconds."""
    found = material(many_ranks(), "trace")
    return found, page(found)


def _copy(of: Trace, model: Process, number: int, threads: int) -> list[tuple[Process, list[Sample]]]:
    """What each round has of one more rank: the model's readings with other numbers of its threads."""
    shift = number * 10_000
    own = {model.key.pid} | {
        clock.tid
        for shot in of.snapshots
        for sample in shot.samples
        if sample.process == model.key
        and isinstance(sample.reading, Known)
        and isinstance(sample.reading.value, CpuUse)
        for clock in (sample.reading.value.clocks.value if isinstance(sample.reading.value.clocks, Known) else ())
    }
    found = []
    for position, shot in enumerate(of.snapshots):
        process = _shifted(msgspec.structs.replace(model, rank={"tp": number}), own, shift)
        samples = [_shifted(one, own, shift) for one in shot.samples if one.process == model.key]
        found.append((process, [_crowded(one, shift, threads, position) for one in samples]))
    return found


def _shifted(value: Any, own: set[int], shift: int) -> Any:
    if isinstance(value, Struct):
        changed = {name: _shifted(getattr(value, name), own, shift) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **changed)
    if isinstance(value, tuple):
        return tuple(_shifted(one, own, shift) for one in value)
    return value + shift if type(value) is int and value in own else value


def _crowded(sample: Sample, shift: int, threads: int, position: int) -> Sample:
    """Add threads until there are so many: some poll, most never run."""
    use = sample.reading.value if isinstance(sample.reading, Known) else None
    if not isinstance(use, CpuUse) or isinstance(use.clocks, Missing):
        return sample
    there = use.clocks.value
    more = [
        ThreadClock(shift + 5_000 + n, position * 40_000_000 if n < 5 else 7, 0, position if n < 5 else 1)
        for n in range(threads - len(there))
    ]
    return msgspec.structs.replace(sample, reading=Known(msgspec.structs.replace(use, clocks=Known((*there, *more)))))


def with_gpus(of: Trace, utils: list[float | None], pid: int) -> Trace:
    """The trace with one GPU, of the given utilisation in each round; None: not read."""
    shots = []
    for shot, util in zip(of.snapshots, utils, strict=False):
        gpu = Gpu(
            index=0,
            name="NVIDIA H200",
            used_bytes=Known(60 << 30),
            total_bytes=Known(140 << 30),
            util_ratio=Missing("gpu", "failed") if util is None else Known(util),
            power_w=Known(120.0),
            power_limit_w=Known(700.0),
            processes=Known((GpuProcess(pid, Known(60 << 30)),)),
        )
        samples = tuple(one for one in shot.samples if one.probe != "gpu")
        sample = msgspec.structs.replace(shot.samples[0], probe="gpu", process=None, reading=Known(Gpus((gpu,))))
        shots.append(msgspec.structs.replace(shot, samples=(*samples, sample), tally={}))
    return msgspec.structs.replace(of, snapshots=tuple(shots))


def planted(of: Trace, hostile: str) -> Trace:
    """The trace, as if recorded with its names, with a hostile text behind each of its free texts."""
    found = _planted(of, hostile)
    assert isinstance(found, Trace)
    return msgspec.structs.replace(found, header=msgspec.structs.replace(found.header, redaction="none"))


def _planted(value: Any, hostile: str) -> Any:
    if isinstance(value, Struct):
        types = {field.name: field.type for field in msgspec.structs.fields(type(value))}
        free = {n: v for n in types if "Literal" not in str(types[n]) and not isinstance(v := getattr(value, n), str)}
        changed = {name: _planted(one, hostile) for name, one in free.items()}
        for name, kind in types.items():
            if isinstance(getattr(value, name), str) and "Literal" not in str(kind) and name not in KEPT:
                changed[name] = getattr(value, name) + hostile
        return msgspec.structs.replace(value, **changed)
    if isinstance(value, tuple | list):
        return type(value)(one + hostile if isinstance(one, str) else _planted(one, hostile) for one in value)
    if isinstance(value, dict):
        return {
            key: _planted(one, hostile) if not isinstance(one, str) else one + hostile for key, one in value.items()
        }
    return value


KEPT = frozenset({"probe", "hangdoc", "state"})
"""Names by which readings are found, and letters of states: with something behind them there is nothing to report."""
