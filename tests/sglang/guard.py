"""Kill every process of a session; as a program, do that when standard input closes, as it does when the tests die."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from pathlib import Path

DEADLINE_S = 60.0


def stat_fields(pid: int) -> list[str]:
    """/proc/PID/stat after the name (which may hold spaces): state, ppid, pgrp, session, ...; empty when gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text[text.rindex(")") + 2 :].split()


def members(session: int) -> list[int]:
    """The live processes of the session; a zombie holds nothing and may wait for an idle parent for ever."""
    found = []
    for pid in (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        fields = stat_fields(pid)
        if fields and int(fields[3]) == session and fields[0] not in "ZX":
            found.append(pid)
    return sorted(found)


def kill_and_wait(pid: int, until: float) -> None:
    """A pidfd names the process itself, so a reused number can't be hit between the look and the kill."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    with contextlib.closing(os.fdopen(handle, "rb", buffering=0)):
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        poller = select.poll()
        poller.register(handle, select.POLLIN)
        poller.poll(max(0.0, until - time.monotonic()) * 1000)


def kill_session(session: int) -> None:
    """Again and again, since a member may fork while the others are killed."""
    until = time.monotonic() + DEADLINE_S
    while alive := members(session):
        if time.monotonic() > until:
            raise TimeoutError(f"session {session} still has {alive} after {DEADLINE_S:g} s of SIGKILL")
        for pid in alive:
            kill_and_wait(pid, until)


def main() -> None:
    """Input: the session on a line, then `done` when its owner has cleaned up by himself, then the end."""
    first = sys.stdin.readline()
    if first and "done" not in sys.stdin.read():
        kill_session(int(first))


if __name__ == "__main__":
    main()
