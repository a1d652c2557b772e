"""Waits that are no system call's doing: a stop by a signal, a tracer, a frozen control group."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hangdoc.model.link import Link
from hangdoc.model.reading import Known
from hangdoc.procfs.numbers import text
from hangdoc.procfs.status import parse_status
from hangdoc_probes._holders import Holders
from hangdoc_probes._reading import read, read_table

FROZEN_V1 = b"FROZEN"
"""freezer.state (kernel/cgroup/legacy_freezer.c); "FREEZING" is on its way there."""

FROZEN_V2 = b"frozen 1"
"""A line of cgroup.events, which says so of the group's ancestors, too (kernel/cgroup/freezer.c)."""

SWITCH_V1, SWITCH_V2 = "freezer.state", "cgroup.freeze"
SWITCHES = (
    ("cgroup.events", FROZEN_V2, SWITCH_V2, SWITCH_V2, b"1"),
    ("freezer.state", FROZEN_V1, SWITCH_V1, "freezer.self_freezing", b"1"),
)
"""Of each version: where it stands that a group is frozen, and how; the file that thaws it; and where it stands that
this group was frozen itself, not one above it, and how."""

DEFAULT_HIERARCHY = b""
"""The name of version 2's only hierarchy in /proc/PID/cgroup."""


def causes(proc: Path, holders: Holders, pid: int) -> Iterator[Link]:
    """Yield what keeps a process as a whole from running; all of it may be read by anybody."""
    line = holders.stat(pid)
    if line is not None and line.state == "T":
        yield Link(tid=pid, through="signal", detail="stopped by a signal, until a SIGCONT", ends=Known(()))
    tracer = parse_status(read(f"{proc}/{pid}/status")).tracer_pid
    if line is not None and line.state == "t" and tracer:
        end = holders.end(tracer)
        yield Link(
            tid=pid,
            through="tracer",
            detail=f"stopped by its tracer, pid {tracer}",
            ends=Known(() if end is None else (end,)),
        )
    if frozen := frozen_by(proc, pid):
        yield Link(tid=pid, through="freezer", detail=frozen, ends=Known(()))


def frozen_by(proc: Path, pid: int) -> str:
    """Say which control group of the process is frozen and how to thaw it, "" when none is."""
    try:
        groups = read(f"{proc}/{pid}/cgroup")
        mounts = _mounts(read_table(f"{proc}/self/mountinfo"))
    except OSError:
        return ""
    for line in groups.splitlines():
        _, controllers, group = line.split(b":", 2)
        for hierarchy in (DEFAULT_HIERARCHY, b"freezer"):
            if hierarchy not in controllers.split(b",") or hierarchy not in mounts:
                continue
            if (switch := _switch(*mounts[hierarchy], group)) is not None:
                word = "0" if switch.name == SWITCH_V2 else "THAWED"
                return f"its cgroup {text(group)} is frozen, until: echo {word} > {switch}"
    return ""


def _mounts(mountinfo: bytes) -> dict[bytes, tuple[bytes, bytes]]:
    """Return mount point and root of the hierarchies that can freeze (proc_pid_mountinfo(5))."""
    found = {}
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(b" - ")
        words, kinds = fields.split(), rest.split()
        if len(words) < 5 or len(kinds) < 3:
            continue
        if kinds[0] == b"cgroup2":
            found[DEFAULT_HIERARCHY] = (words[4], words[3])
        elif kinds[0] == b"cgroup" and b"freezer" in kinds[2].split(b","):
            found[b"freezer"] = (words[4], words[3])
    return found


def _switch(mount: bytes, root: bytes, group: bytes) -> Path | None:
    """Return the file that thaws a frozen group: its own, or that of the nearest group above which was frozen itself.

    None where the group is not frozen. Where no group that can be seen was, one above them was: the topmost is named.
    """
    below = group[len(root) :] if root != b"/" and group.startswith(root) else group
    top = Path(text(mount))
    directory = top / text(below.strip(b"/"))
    for events, frozen, switch, own, on in SWITCHES:
        if not _says(directory / events, frozen):
            continue
        groups = [one for one in (directory, *directory.parents) if one.is_relative_to(top) and (one / switch).exists()]
        return next((one / switch for one in groups if _says(one / own, on)), (groups or [directory])[-1] / switch)
    return None


def _says(path: Path, line: bytes) -> bool:
    try:
        return line in read(str(path)).splitlines()
    except OSError:
        return False
