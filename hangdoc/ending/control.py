"""Kill many at once where the many are members only: a control group, or a process group."""

from __future__ import annotations

import signal
from pathlib import Path

from hangdoc.ending.descriptors import lives
from hangdoc.ending.muster import Muster
from hangdoc.ending.roll import read_forest
from hangdoc.launch.forest import Forest
from hangdoc.launch.pidfd import send
from hangdoc.launch.table import Entry

UNIFIED = "cgroup2"


def kill_control_group(proc: Path, group: str, muster: Muster) -> bool:
    """Kill a whole control group (cgroup.kill, since Linux 5.14) if every process in it is a member.

    group: its path, "" for none; False when it holds anybody else, or cannot be killed as a whole. A group in which
    nobody is seen is killed, too: somebody may be in it who is never there long enough to be seen.
    """
    directory = _directory(proc, group)
    if directory is None:
        return False
    try:
        inside = {int(line) for file in directory.rglob("cgroup.procs") for line in file.read_text().split()}
        inside |= {int(line) for line in (directory / "cgroup.procs").read_text().split()}
        table = read_forest(proc).table
        there = [table[pid] for pid in inside if pid in table]
        # Who has ended since the table was read can be nobody's bystander, and vouches for nobody.
        if not all(muster.is_ours(one) or not lives(proc, one.key) for one in there):
            return False
        (directory / "cgroup.kill").write_text("1")
    except (OSError, ValueError):
        return False
    return True


def _may_go(entry: Entry, muster: Muster, forest: Forest) -> bool:
    """Say whether a process may be hit with its group: it is a member, and no wrapper that may go on; or long dead."""
    if entry.state in "ZX" or not lives(forest.proc, entry.key):
        return True
    member = muster.members.get(entry.key)
    is_wrapper = member is not None and member.fate == "wrapper"
    return muster.is_ours(entry) and not is_wrapper and entry.pid not in forest.never


def _directory(proc: Path, group: str) -> Path | None:
    if not group:
        return None
    try:
        rows = (proc / "self" / "mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return None
    mounts = [row.split() for row in rows if row.partition(" - ")[2].startswith(f"{UNIFIED} ")]
    found = [Path(mount[4]) / group.removeprefix(mount[3]).strip("/") for mount in mounts]
    return next((one for one in found if (one / "cgroup.kill").exists()), None)


def kill_process_groups(proc: Path, muster: Muster) -> bool:
    """Kill each process group that a member leads or led and in which everybody is a member; says whether one was.

    The signal reaches all of a group at one moment, so nobody in it forks past it. The leader's descriptor keeps
    meaning its group after the leader's death. A group in which nobody is seen is hit, too: somebody may be in it who
    is never there long enough to be seen.
    """
    forest = read_forest(proc)
    killed = False
    for number, leader in muster.led_groups().items():
        inside = [one for one in forest.table.values() if one.group == number]
        if not all(_may_go(one, muster, forest) for one in inside):
            continue
        try:
            killed = send(muster.handles[leader].descriptor, signal.SIGKILL, whole_group=True) or killed
        except OSError:
            continue  # an older kernel: one after the other then
    return killed
