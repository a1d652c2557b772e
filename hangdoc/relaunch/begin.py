"""Start the command of a plan in a session of its own, with the old launch's limits, its output in a log."""

from __future__ import annotations

import json
import os
import resource
import select
import sys
import time
from pathlib import Path

from hangdoc.errors import HangdocError
from hangdoc.launch.find import PROC
from hangdoc.launch.start import Order, Started, start
from hangdoc.launch.table import read_argv
from hangdoc.relaunch.door import CANNOT_EXECUTE
from hangdoc.relaunch.records import Command

DOOR = Path(__file__).with_name("door.py")

STEP_S = 0.02
"""From one look whether it is the program to the next. Arbitrary."""

DOOR_S = 30.0
"""How long taking limits over and becoming the program may take: a Python's start, on a loaded machine. Arbitrary."""


def begin(command: Command, log: Path) -> Started:
    """Start it; HangdocError (2) when it cannot be started."""
    limits, cpus = changed_limits(command), changed_cpus(command)
    if not limits and not cpus:
        return start(Order(command.argv, command.cwd, command.environment, own_session=True, output=log))
    order = json.dumps({"limits": limits, "cpus": cpus})
    argv = (sys.executable, "-I", "-S", str(DOOR), order, *command.argv)
    started = start(Order(argv, command.cwd, command.environment, own_session=True, output=log))
    _wait_for_the_program(argv, started, log)
    return started


def changed_limits(command: Command) -> dict[str, tuple[int, int]]:
    """Return the limits that differ from hangdoc's own; a hard one that may not be raised stays where it is."""
    found: dict[str, tuple[int, int]] = {}
    for name, (soft, hard) in command.limits.items():
        own = resource.getrlimit(getattr(resource, name))
        most = hard if os.geteuid() == 0 else _smaller(hard, own[1])
        wanted = (_smaller(soft, most), most)
        if wanted != own:
            found[name] = wanted
    return found


def changed_cpus(command: Command) -> list[int]:
    """Return the CPUs that the launch was bound to, empty when they are hangdoc's own."""
    own = os.sched_getaffinity(0)
    return [] if command.cpus is None or command.cpus == own else sorted(command.cpus)


def _smaller(one: int, other: int) -> int:
    if resource.RLIM_INFINITY in (one, other):
        return other if one == resource.RLIM_INFINITY else one
    return min(one, other)


def _wait_for_the_program(door: tuple[str, ...], started: Started, log: Path) -> None:
    """Wait until it is the program that was asked for: before, its command line is not one."""
    deadline_s = time.monotonic() + DOOR_S
    while read_argv(PROC, started.pid) == door and time.monotonic() < deadline_s:
        select.select([started.handle.descriptor], [], [], STEP_S)
        ended = os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is not None and ended.si_status == CANNOT_EXECUTE:
            raise HangdocError(f"{log.read_text(errors='replace').strip()}; nothing was started", "look at the command")
