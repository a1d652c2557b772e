"""Hold the user to what he named: a pid ends the launch that it is a member of, and never the one who asks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from hangdoc.ending.plan import Plan
from hangdoc.errors import HangdocError
from hangdoc.launch.complaints import shown
from hangdoc.launch.find import PROC
from hangdoc.launch.table import Table, read_table

MOST_NAMED = 4
"""Pids of a launch that a refusal names. Arbitrary: a line."""


def callers(table: Table, own_pid: int) -> frozenset[int]:
    """Return hangdoc, all its ancestors, and the leader of its session with all of that one's: who waits for hangdoc.

    Unlike launch.find.own_and_callers it does not end at an engine's process: an engine that runs hangdoc waits, too.
    """
    found: set[int] = set()
    own = table.get(own_pid)
    for start in (own_pid, own.session if own is not None else own_pid):
        entry = table.get(start)
        while entry is not None and entry.pid not in found:
            found.add(entry.pid)
            entry = table.get(entry.ppid)
    return frozenset({own_pid, *found})


def refuse_callers(pid: int | None, proc: Path = PROC) -> None:
    """Raise HangdocError (2) when the pid that was named is hangdoc's own or of who called it. Pid 1 is told later."""
    table = read_table(proc)
    if pid is None or pid == 1 or pid not in callers(table, os.getpid()):
        return
    what = "hangdoc itself" if pid == os.getpid() else f"what hangdoc was called from ({shown(table[pid].title)})"
    raise HangdocError(
        f"{pid} is {what}, which it never ends: nothing was touched", "give the pid of a launch's member"
    )


def refuse_outsider(pid: int | None, plans: Sequence[Plan], proc: Path = PROC) -> None:
    """Raise HangdocError (2) unless the named pid is a member of the launch found, and no member waits for hangdoc.

    A notebook, a test runner or a supervisor above a launch leads to it; but who names him did not name the launch.
    """
    above = callers(read_table(proc), os.getpid())
    for plan in plans:
        pids = [one.key.pid for one in plan.members]
        waiting = next((one for one in pids if one in above), None)
        if waiting is not None:
            raise HangdocError(
                f"hangdoc was called from member {waiting} of the launch, which it never ends: nothing was touched",
                "call it from outside the launch",
            )
        if pid is None or (pid != 1 and pid in {one.key.pid for one in plan.roll.members}):
            continue
        launch = plan.roll.launch
        others = ", ".join(map(str, [one for one in pids if one != launch.root.pid][:MOST_NAMED]))
        more = f" (its other members: {others})" if others else ""
        what = f"the {launch.engine} launch {launch.root.pid} that runs below it"
        raise HangdocError(
            f"{pid} is no member of {what}: nothing was touched",
            f"if that launch is meant, give {launch.root.pid}{more}",
        )
