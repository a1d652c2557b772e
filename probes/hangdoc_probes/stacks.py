"""What the Python code is doing: the stack of every Python thread, read without stopping the process."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from hangdoc.errors import HangdocError
from hangdoc.logs.pyspy import DumpedThread, parse_dump
from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Payload, Sample
from hangdoc.model.stack import Stacks, ThreadStack
from hangdoc.procfs.cmdline import is_python
from hangdoc.procfs.stat import split_stat
from hangdoc.sampling.probe import Context, Probe, Round, Session
from hangdoc_probes import _pyspy
from hangdoc_probes._reading import (
    CAP_SYS_PTRACE,
    attempt,
    capabilities,
    missing,
    permission_remedy,
    program_file,
    ptrace_scope,
    read,
    read_table,
)
from hangdoc_probes._tids import Tids

NAME = "stacks"
EVERY = 2
"""All processes are dumped every second round: three times in an observation of 5 s (rounds 0, 2, 4). In between only
those whose main thread runs at that moment: a loop of two lines shows one of them in three dumps out of three once in
four observations, in six out of six once in 32."""
SELDOM = 4
"""Helpers that never decide a diagnosis are dumped in every fourth of these rounds only; arbitrary."""
HELPERS = ("resource_tracker", "resource_sharer", "forkserver", "compile_worker")
UNSEEN = Missing(NAME, "unsupported", "not a Python process")
NOT_INSTALLED = Missing(
    NAME,
    "not-installed",
    "py-spy is neither beside hangdoc's interpreter nor on PATH",
    "install py-spy into hangdoc's environment: pip install py-spy",
)


class StacksSession:
    """Dumps the Python members; remembers which are Python."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._proc = context.proc
        self._takes = 0
        self._python: dict[tuple[ProcessKey, str], bool] = {}
        program = _pyspy.find()
        self._dumps = _pyspy.Dumps(program, self._is_stopped, self._is_alive) if program else None

    def take(self, now: Round) -> Iterable[Sample]:
        """Dump every Python process of the round that is worth it."""
        wanted = sorted(self._wanted(now), key=is_helper)
        self._takes += 1
        targets: dict[int, ProcessKey] = {}
        for process in wanted:
            refusal = self._refusal(process.key)
            if refusal is None:
                targets[process.key.pid] = process.key
            else:
                yield _sample(process.key, refusal)
        yield from self._dump(targets)

    def _wanted(self, now: Round) -> list[Process]:
        if self._takes % EVERY and not now.calm:
            return [one for one in now.processes if not is_helper(one) and self._state(one.key.pid) == b"R"]
        return [one for one in now.processes if self._takes % (EVERY * SELDOM) == 0 or not is_helper(one)]

    @property
    def children_cpu_s(self) -> float:
        """CPU time of every py-spy that ended."""
        return self._dumps.cpu_s if self._dumps else 0.0

    def interrupt(self) -> None:
        """Kill every py-spy that runs, so that a take in progress ends."""
        if self._dumps:
            self._dumps.interrupt()

    def close(self) -> None:
        """Kill every py-spy that still runs."""
        if self._dumps:
            self._dumps.close()

    def _dump(self, targets: dict[int, ProcessKey]) -> Iterator[Sample]:
        if self._dumps is None:
            yield from (_sample(key, NOT_INSTALLED) for key in targets.values())
            return
        for outcome in self._dumps.take(list(targets)):
            yield _sample(targets[outcome.pid], self._reading(outcome))

    def _refusal(self, key: ProcessKey) -> Missing | None:
        """Say why a process need not be tried; a dump that cannot succeed costs nothing."""
        try:
            if split_stat(read(f"{self._proc}/{key.pid}/stat"))[2][0] in b"ZX":
                return Missing(NAME, "unsupported", "the process is a zombie, or its main thread has ended")
            return self._untraceable(key.pid) if self._is_python(key) else UNSEEN
        except OSError as error:
            return missing(NAME, error)
        except HangdocError as error:
            return Missing(NAME, "failed", error.message)

    def _untraceable(self, pid: int) -> Missing | None:
        try:
            read(f"{self._proc}/{pid}/syscall")  # asks the kernel for the same right that reading memory takes
        except PermissionError as error:
            return missing(NAME, error, attach=True)
        except FileNotFoundError:
            return None  # a kernel without this file: py-spy will tell
        return None

    def _is_python(self, key: ProcessKey) -> bool:
        # A process keeps its start time through exec, so what it runs is part of what is remembered.
        try:
            program = program_file(self._proc, key.pid)
        except FileNotFoundError:
            return False  # a kernel thread
        known = self._python.get((key, program))
        if known is None:
            known = is_python(program, b"") or is_python(program, read_table(f"{self._proc}/{key.pid}/maps"))
            self._python[key, program] = known
        return known

    def _reading(self, outcome: _pyspy.Outcome) -> Reading[Payload]:
        if outcome.timed_out:
            return Missing(NAME, "timeout", f"py-spy took longer than {_pyspy.DEADLINE_S:g} s and was killed")
        if outcome.status == -signal.SIGKILL:
            return Missing(NAME, "not-taken", "py-spy was killed: the observation ended first, or memory ran out")
        if outcome.status != 0:
            return self._failure(outcome)
        return attempt(NAME, lambda: Known(self._interned(outcome.pid, parse_dump(outcome.output))))

    def _failure(self, outcome: _pyspy.Outcome) -> Missing:
        if not self._is_alive(outcome.pid):
            return Missing(NAME, "gone", "the process ended while py-spy looked at it")
        said = outcome.complaint.strip().partition("\n")[0].removeprefix("Error: ") or f"exit status {outcome.status}"
        return Missing(NAME, "failed", f"py-spy failed {_pyspy.ATTEMPTS} times: {said}")

    def _is_alive(self, pid: int) -> bool:
        return self._state(pid) not in b"ZX"

    def _is_stopped(self, pid: int) -> bool:
        return self._state(pid) == b"T"

    def _state(self, pid: int) -> bytes:
        try:
            return split_stat(read(f"{self._proc}/{pid}/stat"))[2][0]
        except (OSError, HangdocError):
            return b"X"

    def _interned(self, pid: int, threads: list[DumpedThread]) -> Stacks:
        tids = Tids(self._proc, pid)
        if tids.nested:
            host = tids.outer
            threads = [self._seen_from_here(pid, thread, host[thread.tid]) for thread in threads if thread.tid in host]
        intern = self._context.intern
        return Stacks(
            tuple(ThreadStack(one.tid, one.name, one.active, one.owns_gil, intern(one.frames)) for one in threads)
        )

    def _seen_from_here(self, pid: int, thread: DumpedThread, tid: int) -> DumpedThread:
        """Correct what py-spy says of a thread in a container: it looks up the state under the container's number."""
        try:
            active = split_stat(read(f"{self._proc}/{pid}/task/{tid}/stat"))[2][0] == b"R"
        except OSError:
            active = False  # it has ended
        return replace(thread, tid=tid, active=active)


def is_helper(process: Process) -> bool:
    """Say whether a process never has to move for a launch to go on.

    Rule: compile workers, and the resource trackers and fork servers of multiprocessing. It fails when the compiler
    itself hangs, which the stack of whoever waits for it still shows.
    """
    words = " ".join((process.title, *process.argv))
    return process.role == "compiler" or any(name in words for name in HELPERS)


def _sample(key: ProcessKey, reading: Reading[Payload]) -> Sample:
    return Sample(probe=NAME, process=key, taken_ns=time.clock_gettime_ns(time.CLOCK_BOOTTIME), reading=reading)


def open_session(context: Context) -> Session:
    """Start reading a launch."""
    return StacksSession(context)


def check(proc: Path) -> Reading[str]:
    """Say whether stacks can be read here."""
    program = _pyspy.find()
    if program is None:
        return NOT_INSTALLED
    if os.geteuid() == 0 and not capabilities(proc) & CAP_SYS_PTRACE:
        return Missing(NAME, "denied", "root without CAP_SYS_PTRACE", permission_remedy(attach=True))
    if os.geteuid() != 0 and ptrace_scope(proc) > 0:
        return Missing(NAME, "denied", "Yama lets only root look", permission_remedy(attach=True))
    return Known(f"Python stacks of one's own processes, or of any as root ({program.name}, without stopping them)")


PROBE = Probe(
    name=NAME,
    title="the Python stack of each thread",
    open=open_session,
    check=check,
    background=True,
    deep=True,
    deadline_s=30.0,
    budget_ratio=0.05,
    allowance_s=10.0,
    reads=("py-spy dump --json --nonblocking", "/proc/PID/exe", "/proc/PID/maps"),
)
