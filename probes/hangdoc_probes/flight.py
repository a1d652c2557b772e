"""Dumps that torch's flight recorder wrote beside the launch: which collective each rank enqueued last.

torch writes them when its watchdog gives up, or when somebody asks through its pipe. Nothing in them is executed: see
hangdoc.logs.flight.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hangdoc.errors import HangdocError
from hangdoc.logs import flight
from hangdoc.model.flight import Flight, FlightRank
from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.reading import Known, Reading
from hangdoc.model.snapshot import Payload, Sample
from hangdoc.sampling.probe import Context, Probe, Round, Session
from hangdoc_probes._reading import missing
from hangdoc_probes._reading import read_table as read_file

NAME = "flight"
VARIABLES = (b"TORCH_FR_DUMP_TEMP_FILE", b"TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
"""Where dumps go, the newer name first; the rank is put after it."""

DEFAULT = "/tmp/nccl_trace_rank_"  # noqa: S108  torch's own, in the launch's file system
LARGEST_BYTES = 16 << 20
"""A larger dump is not read. Arbitrary: 2,000 entries, torch's default, with their stacks are some 4 MB."""

MOST = 256
"""Dumps that are read. Arbitrary."""


@dataclass(frozen=True)
class _Dump:
    """A dump as it was when it was read."""

    modified_ns: int
    size: int
    counts: tuple[flight.Count, ...] | None


class FlightSession:
    """Looks for dumps in thorough rounds; reads each once."""

    def __init__(self, context: Context) -> None:
        self._proc = context.proc
        self._read: dict[str, _Dump] = {}

    def take(self, now: Round) -> Iterable[Sample]:
        """Look once; a launch that is known to be well is left alone."""
        ranks = [one for one in now.processes if one.role in {"scheduler", "worker"}]
        if now.calm or not ranks or not now.thorough:
            return
        taken_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        try:
            reading: Reading[Payload] = self._found(ranks)
        except OSError as error:
            reading = missing(NAME, error)
        yield Sample(probe=NAME, process=None, taken_ns=taken_ns, reading=reading)

    def close(self) -> None:
        """Nothing is held."""

    def _found(self, ranks: list[Process]) -> Reading[Payload]:
        speaker = ranks[0].key
        root, prefix = f"{self._proc}/{speaker.pid}/root", self._prefix(speaker.pid)
        counts: dict[int, tuple[flight.Count, ...]] = {}
        unreadable = 0
        for rank, path in dumps_at(root, prefix)[:MOST]:
            dump = self._dump(path, self._started_ns(speaker))
            if dump is not None and dump.counts is None:
                unreadable += 1
            elif dump is not None and dump.counts is not None:
                counts[rank] = dump.counts
        named = by_rank(ranks)
        told = flight.events(counts, "tp")
        return Known(Flight(ranks=tuple(_rank(dict(one.numbers), named) for one in told), unreadable=unreadable))

    def _prefix(self, pid: int) -> str:
        environment = read_file(f"{self._proc}/{pid}/environ")
        named = dict(item.partition(b"=")[::2] for item in environment.split(b"\0"))
        return next((os.fsdecode(named[name]) for name in VARIABLES if named.get(name)), DEFAULT)

    def _started_ns(self, key: ProcessKey) -> int:
        """Return when a process started, in Unix time."""
        rows = read_file(f"{self._proc}/stat").split(b"\n")
        boot_s = next(int(row.split()[1]) for row in rows if row.startswith(b"btime"))
        return (boot_s + key.start_ticks // os.sysconf("SC_CLK_TCK")) * 10**9

    def _dump(self, path: str, since_ns: int) -> _Dump | None:
        """Read a dump; None for one that is older than the launch."""
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            seen = os.fstat(descriptor)
            if seen.st_mtime_ns < since_ns:
                return None
            before = self._read.get(path)
            if before is not None and (before.modified_ns, before.size) == (seen.st_mtime_ns, seen.st_size):
                return before
            self._read[path] = _Dump(seen.st_mtime_ns, seen.st_size, _counts(descriptor, seen.st_size))
            return self._read[path]
        finally:
            os.close(descriptor)


def _counts(descriptor: int, size: int) -> tuple[flight.Count, ...] | None:
    if size > LARGEST_BYTES:
        return None
    try:
        return flight.parse(os.pread(descriptor, size, 0))
    except HangdocError:
        return None


def dumps_at(root: str, prefix: str) -> list[tuple[int, str]]:
    """Return rank and path of each dump below a process's root directory; none where the directory is not there."""
    directory, _, begin = prefix.rpartition("/")
    try:
        with os.scandir(f"{root}/{directory.lstrip('/')}") as entries:
            # A pipe is not even opened: whoever writes into it would take that for a reader.
            files = [(entry.name, entry.path) for entry in entries if entry.is_file(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    named = ((re.fullmatch(rf"{re.escape(begin)}(\d{{1,6}})", name), path) for name, path in files)
    return sorted((int(match[1]), path) for match, path in named if match is not None)


def by_rank(ranks: Iterable[Process]) -> Mapping[int, ProcessKey]:
    """Map global ranks to members, where tensor parallelism is the only kind and all ranks are here.

    Rule: ranks that have a "tp" and nothing else, without gaps from 0 on; then both numbers are the same. Nobody
    otherwise.
    """
    members = list(ranks)
    found = {one.rank.get("tp", 0): one.key for one in members if set(one.rank) <= {"tp"}}
    return found if len(found) == len(members) and set(found) == set(range(len(members))) else {}


def _rank(numbers: Mapping[str, float], named: Mapping[int, ProcessKey]) -> FlightRank:
    rank = int(numbers["rank"])
    return FlightRank(rank, int(numbers["enqueued"]), int(numbers["completed"]), named.get(rank))


def open_session(context: Context) -> Session:
    """Start looking beside a launch."""
    return FlightSession(context)


def check(proc: Path) -> Reading[str]:
    """Say whether the file system of a launch can be looked into here."""
    try:
        (proc / "self" / "root").stat()
    except OSError as error:
        return missing(NAME, error)
    return Known("dumps of torch's flight recorder, of one's own launches, or of any as root")


PROBE = Probe(
    name=NAME,
    title="dumps of torch's flight recorder beside the launch",
    open=open_session,
    check=check,
    background=True,
    deep=True,
    deadline_s=10.0,
    host=True,
    reads=("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_FR_DUMP_TEMP_FILE", DEFAULT + "*", "/proc/PID/environ"),
)
