"""Launches known from a log alone: what a case tells of lines and dumps is saved, and read as `diagnose` reads it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hangdoc import discovery
from hangdoc.features.baseline import Baseline
from hangdoc.features.clock import later
from hangdoc.logs.good import read_baseline
from hangdoc.logs.moment import Moment
from hangdoc.logs.read import Wishes, read
from hangdoc.model.log import LogTail
from hangdoc.model.reading import Known
from hangdoc.model.snapshot import Sample
from hangdoc.trace.records import Trace
from tests.cases.words import frame

LAUNCH_KEYS = frozenset({"like", "from_log", "engine", "log", "process", "baseline"})
LOG_KEYS = frozenset({"before", "silent"})
PROCESS_KEYS = frozenset({"pid", "stack", "threads"})
THREAD_KEYS = frozenset({"tid", "name", "stack"})

WRITTEN_NS = 1_767_225_600 * 10**9
"""When the file was changed last: the first moment of 2026. Arbitrary."""


def trace_of_log(told: Mapping[str, Any]) -> Trace:
    """Return the trace that `hangdoc diagnose` makes of a case's log, and of the dumps of its processes."""
    silent_s = told.get("log", {}).get("silent")
    named = discovery.engine(told["engine"]) if "engine" in told else None
    with _directory() as directory:
        paths = [*_log(told, directory), *_dumps(told, directory)]
        trace = read(paths, Wishes(engine=named))
        return trace if silent_s is None else read(paths, Wishes(engine=named, now=_later(trace, silent_s)))


def _later(trace: Trace, silent_s: float) -> Moment:
    """Return the moment so long after a log's end, on its own clock where it has one."""
    ends = [tail.last_stamp for one in trace.snapshots[0].samples if isinstance(tail := _value(one), LogTail)]
    return Moment(later(ends[0], silent_s) if ends else "", WRITTEN_NS + round(silent_s * 10**9))


def _value(sample: Sample) -> object:
    return sample.reading.value if isinstance(sample.reading, Known) else None


def baseline_of(told: Mapping[str, Any]) -> Baseline | None:
    """Return the good start that a case's log is compared with; None when it tells of none."""
    if "baseline" not in told:
        return None
    with _directory() as directory:
        return read_baseline(_saved(directory / "good.log", _lines(told["baseline"])))


@contextmanager
def _directory() -> Iterator[Path]:
    with TemporaryDirectory(prefix="hangdoc-case-") as name:
        yield Path(name)


def _log(told: Mapping[str, Any], directory: Path) -> Iterator[Path]:
    if "log" in told:
        yield _saved(directory / "server.log", _lines(told["log"]["before"]))


def _dumps(told: Mapping[str, Any], directory: Path) -> Iterator[Path]:
    for one in told.get("process", ()):
        threads = [{"tid": one["pid"], "name": "MainThread", "stack": one["stack"]}, *one.get("threads", ())]
        dump = [_thread(one["pid"], thread) for thread in threads]
        yield _saved(directory / f"dump-{one['pid']}.json", json.dumps(dump))


def _thread(pid: int, thread: Mapping[str, Any]) -> dict[str, Any]:
    frames = [frame(line) for line in thread["stack"].strip().splitlines()]
    return {
        "pid": pid,
        "os_thread_id": thread["tid"],
        "thread_name": thread["name"],
        "active": False,
        "owns_gil": False,
        "frames": [{"name": one.function, "filename": one.file, "line": one.line} for one in frames],
    }


def _lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _saved(path: Path, text: str) -> Path:
    path.write_text(text)
    os.utime(path, ns=(WRITTEN_NS, WRITTEN_NS))
    return path
