"""Parse what `py-spy dump` writes, JSON and the text that people paste and watchdogs print, and faulthandler's."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any

from hangdoc.errors import HangdocError
from hangdoc.model.stack import Frame, Stack

MAIN = "MainThread"


@dataclass(frozen=True, slots=True)
class DumpedThread:
    """One Python thread as py-spy saw it; tid as the target's own process namespace counts."""

    tid: int
    name: str
    active: bool
    owns_gil: bool
    frames: Stack


def parse_dump(data: bytes) -> list[DumpedThread]:
    """Read a dump; frames stay innermost first.

    A thread whose number py-spy could not find out is left out, unless it is the main one, whose number is the pid.

    >>> frame = '{"name": "f", "filename": "/a.py", "line": 3, "is_entry": true}'
    >>> thread = '{"pid": 5, "os_thread_id": null, "thread_name": "MainThread", "active": true, "owns_gil": false'
    >>> parse_dump(f'[{thread}, "frames": [{frame}]}}]'.encode())[0].frames
    (Frame(function='f', file='/a.py', line=3),)
    """
    try:
        threads = [_thread(entry) for entry in json.loads(data)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise HangdocError("py-spy's output is not a dump", "try another version of py-spy") from error
    found = [thread for thread in threads if thread is not None]
    if not found:
        raise HangdocError("py-spy found no thread", "try another version of py-spy")
    return found


def _thread(entry: dict[str, Any]) -> DumpedThread | None:
    name = str(entry["thread_name"] or "")
    tid = entry["os_thread_id"]
    if tid is None:
        if name != MAIN:
            return None
        tid = entry["pid"]
    frames = tuple(Frame(str(at["name"]), str(at["filename"]), int(at["line"])) for at in entry["frames"])
    return DumpedThread(int(tid), name, bool(entry["active"]), bool(entry["owns_gil"]), frames)


@dataclass
class DumpedProcess:
    """A process of a text dump while it is being read. pid 0: the dump's head was not there."""

    pid: int
    title: str
    rank: dict[str, int]
    threads: list[DumpedThread] = field(default_factory=list)


_PROCESS = re.compile(r"^\s*Process (?P<pid>\d{1,10}): (?P<title>.*)$")
_THREAD = re.compile(
    r"^\s*Thread (?P<tid>0x[0-9a-fA-F]{1,16}|\d{1,10}) \((?P<state>[a-z]+(?:\+gil)?)\)(?:: \"(?P<name>.*)\")?\s*$"
)
_FAULT_THREAD = re.compile(r"^\s*(?:Current thread|Thread) (?P<tid>0x[0-9a-fA-F]{1,16}) .*\(most recent call first\):$")
_FAULT_FRAME = re.compile(r"^\s+File \"(?P<file>[^\"]{1,300})\", line (?P<line>\d{1,9}) in (?P<function>\S.{0,300})$")
_FRAME = re.compile(r"^\s*(?P<function>\S.{0,300}?) \((?P<file>[^()]{1,300}?)(?::(?P<line>\d{1,9}))?\)\s*$")
_LOCALS = re.compile(r"^\s+(?:Arguments|Locals):|^\s{8,}\w+: ")

_MOST_FRAMES, _MOST_THREADS, _MOST_PROCESSES = 512, 2048, 256
"""What is kept of text dumps, so that no log can eat the memory. Arbitrary: a node has some 100 processes."""


class TextDumps:
    """Takes the lines of a log and keeps the dumps that stand in it; the last dump of each process counts."""

    def __init__(self) -> None:
        self.processes: list[DumpedProcess] = []
        self._open: DumpedProcess | None = None
        self._frames: list[Frame] | None = None

    @property
    def is_open(self) -> bool:
        """Whether a dump is being read, so that the next line may belong to it."""
        return self._open is not None

    def take(self, line: str, rank: dict[str, int]) -> bool:
        """Take one line without its wrapping; tell whether it belongs to a dump."""
        if (match := _PROCESS.match(line)) is not None:
            self._begin(DumpedProcess(int(match["pid"]), match["title"].strip(), rank))
        elif (match := _THREAD.match(line)) is not None:
            self._thread(match, rank)
        elif (match := _FAULT_THREAD.match(line)) is not None:
            self._fault_thread(int(match["tid"], 16), rank)
        elif self._open is None or self._frames is None:
            return self._open is not None and line.startswith("Python v")
        elif (match := _FRAME.match(line) or _FAULT_FRAME.match(line)) and len(self._frames) < _MOST_FRAMES:
            self._frames.append(Frame(match["function"], match["file"], int(match["line"] or 0)))
            self._replace_last()
        elif line.strip() and not _LOCALS.match(line):
            self.close()
            return False
        return True

    def close(self) -> None:
        """End the dump that is open: what follows stands elsewhere in the log."""
        threads = [] if self._open is None else self._open.threads
        if threads and not any(thread.name for thread in threads):  # faulthandler's: it prints the main thread last
            threads[-1] = replace(threads[-1], name=MAIN)
        self._open, self._frames = None, None

    def _begin(self, process: DumpedProcess) -> None:
        self.processes = [one for one in self.processes if one.pid != process.pid or not process.pid]
        if len(self.processes) < _MOST_PROCESSES:
            self.processes.append(process)
        self._open, self._frames = process, None

    def _thread(self, match: re.Match[str], rank: dict[str, int]) -> None:
        tid = int(match["tid"], 16 if match["tid"].startswith("0x") else 10)
        name = match["name"] or ""
        if self._open is None:  # a paste without the head: the main thread's number is the process's
            self._begin(DumpedProcess(tid if name == MAIN else 0, "", rank))
        assert self._open is not None
        if len(self._open.threads) >= _MOST_THREADS:
            return
        self._frames = []
        state = match["state"]
        self._open.threads.append(DumpedThread(tid, name, state.startswith("active"), "gil" in state, ()))

    def _fault_thread(self, tid: int, rank: dict[str, int]) -> None:
        if self._open is None:
            self._begin(DumpedProcess(0, "", rank))
        assert self._open is not None
        if len(self._open.threads) < _MOST_THREADS:
            self._frames = []
            self._open.threads.append(DumpedThread(tid, "", False, False, ()))

    def _replace_last(self) -> None:
        assert self._open is not None
        assert self._frames is not None
        self._open.threads[-1] = replace(self._open.threads[-1], frames=tuple(self._frames))
