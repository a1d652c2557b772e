"""The native stacks below Python: only when somebody asked for them, because each stops its process for a moment.

Never on a process of which a thread is in D, T or t, or that is traced: a tool that stops threads one by one would
freeze all others until that one wakes. One tool at a time; what it leaves stopped is let go on.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from hangdoc.errors import HangdocError
from hangdoc.logs.pyspy import parse_dump
from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Payload, Sample
from hangdoc.model.stack import Stacks, ThreadStack
from hangdoc.procfs.stat import split_stat
from hangdoc.procfs.status import parse_status
from hangdoc.sampling.probe import Context, Probe, Round, Session
from hangdoc_probes import _pyspy, stacks
from hangdoc_probes._reading import attempt, gone, missing, numbered, read

NAME = "native"
DEADLINE_S = 20.0
"""For one dump; 0.5 s were measured for a process with torch for the CPU and 53 threads. The symbols of its libraries
are read first, and those for GPUs have gigabytes of them. Arbitrary above that."""
MOST = 8
"""Processes that are dumped. Arbitrary: the ranks of one node."""
STOPPED_STATES = b"DTt"
UNSAFE = "a thread is in state {state}: a tool that stops threads would freeze the others"


class NativeSession:
    """Dumps ranks, or whatever is Python where there are none, one after the other."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._proc = context.proc
        self._over = False
        program = _pyspy.find()
        self._dumps = (
            _pyspy.Dumps(program, self._is_stopped, lambda _: False, _pyspy.Way(("--native",), DEADLINE_S, 1))
            if program
            else None
        )

    @property
    def children_cpu_s(self) -> float:
        """CPU time of every py-spy that ended."""
        return self._dumps.cpu_s if self._dumps else 0.0

    def interrupt(self) -> None:
        """Kill the py-spy that runs."""
        self._over = True
        if self._dumps:
            self._dumps.interrupt()

    def close(self) -> None:
        """Kill the py-spy that still runs."""
        if self._dumps:
            self._dumps.close()

    def take(self, now: Round) -> Iterable[Sample]:
        """Dump each process that may be, once."""
        ranks = [one for one in now.processes if one.role in {"scheduler", "worker"}]
        for process in (ranks or [one for one in now.processes if not stacks.is_helper(one)])[:MOST]:
            if self._over:
                return
            yield from self._sample(process)

    def _sample(self, process: Process) -> Iterator[Sample]:
        reading = attempt(NAME, lambda: self._read(process.key))
        taken_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        yield Sample(probe=NAME, process=process.key, taken_ns=taken_ns, reading=reading)

    def _read(self, key: ProcessKey) -> Reading[Payload]:
        if self._dumps is None:
            return Missing(NAME, "not-installed", stacks.NOT_INSTALLED.detail, stacks.NOT_INSTALLED.remedy)
        if (refusal := gone(NAME, self._proc, key) or self._unsafe(key.pid)) is not None:
            return refusal
        outcome = next(self._dumps.take([key.pid]))
        if outcome.timed_out:
            return Missing(NAME, "timeout", f"py-spy took longer than {DEADLINE_S:g} s and was killed")
        if outcome.status == -signal.SIGKILL:
            return Missing(NAME, "not-taken", "py-spy was killed: the observation ended first, or memory ran out")
        if outcome.status != 0:
            said = outcome.complaint.strip().partition("\n")[0].removeprefix("Error: ")
            return Missing(NAME, "failed", f"py-spy failed: {said or outcome.status}")
        return Known(self._interned(outcome.output))

    def _unsafe(self, pid: int) -> Missing | None:
        """Say why a process must not be stopped even for a moment."""
        for tid in numbered(f"{self._proc}/{pid}/task"):
            try:
                state = split_stat(read(f"{self._proc}/{pid}/task/{tid}/stat"))[2][0]
            except (FileNotFoundError, ProcessLookupError):
                continue  # the thread has ended
            except HangdocError as error:
                return Missing(NAME, "failed", error.message)
            if state in STOPPED_STATES:
                return Missing(NAME, "not-taken", UNSAFE.format(state=state.decode()))
        try:
            traced = parse_status(read(f"{self._proc}/{pid}/status")).tracer_pid
        except OSError as error:
            return missing(NAME, error)
        return Missing(NAME, "not-taken", f"process {traced} traces it already") if traced else None

    def _is_stopped(self, pid: int) -> bool:
        try:
            return split_stat(read(f"{self._proc}/{pid}/stat"))[2][0] == b"T"
        except (OSError, HangdocError):
            return False

    def _interned(self, output: bytes) -> Stacks:
        intern = self._context.intern
        return Stacks(
            tuple(
                ThreadStack(one.tid, one.name, one.active, one.owns_gil, intern(one.frames))
                for one in parse_dump(output)
            )
        )


def open_session(context: Context) -> Session:
    """Start reading a launch."""
    return NativeSession(context)


def check(proc: Path) -> Reading[str]:
    """Say whether native stacks can be read here: where the stacks of Python can."""
    found = stacks.check(proc)
    if isinstance(found, Missing):
        return Missing(NAME, found.reason, found.detail, found.remedy)
    return Known("native stacks of one's own ranks, or of any as root (py-spy, which stops each for a moment)")


PROBE = Probe(
    name=NAME,
    title="native stacks, with --native and at a hang only: stops each rank for a moment",
    open=open_session,
    check=check,
    background=True,
    deadline_s=60.0,
    budget_ratio=1.0,
    on_request=True,
    reads=("py-spy dump --json --native",),
)
