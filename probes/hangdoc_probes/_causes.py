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
        yield Link(tid=pid, through="freezer", detail=f"its cgroup {frozen} is frozen", ends=Known(()))


def frozen_by(proc: Path, pid: int) -> str:
    """Return the control group that is frozen and holds the process, "" when it is not frozen."""
    try:
        groups = read(f"{proc}/{pid}/cgroup")
        mounts = _mounts(read_table(f"{proc}/self/mountinfo"))
    except OSError:
        return ""
    for line in groups.splitlines():
        _, controllers, group = line.split(b":", 2)
        for hierarchy in (DEFAULT_HIERARCHY, b"freezer"):
            if hierarchy in controllers.split(b",") and hierarchy in mounts and _is_frozen(*mounts[hierarchy], group):
                return text(group)
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


def _is_frozen(mount: bytes, root: bytes, group: bytes) -> bool:
    below = group[len(root) :] if root != b"/" and group.startswith(root) else group
    directory = f"{text(mount)}/{text(below.strip(b'/'))}"
    for name, word in (("cgroup.events", FROZEN_V2), ("freezer.state", FROZEN_V1)):
        try:
            if word in read(f"{directory}/{name}").splitlines():
                return True
        except OSError:
            continue
    return False
