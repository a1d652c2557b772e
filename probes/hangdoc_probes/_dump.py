"""Parse what `py-spy dump --json` writes."""

from __future__ import annotations

import json
from dataclasses import dataclass
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
