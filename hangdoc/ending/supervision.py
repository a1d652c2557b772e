"""Find what would start a launch again when it ends, and the command that stops that."""

from __future__ import annotations

import re
import shlex

from hangdoc.ending.kinship import control_group
from hangdoc.ending.records import Supervisor
from hangdoc.ending.scripts import may_repeat
from hangdoc.launch.commands import base_name, parse_python
from hangdoc.launch.complaints import shown
from hangdoc.launch.forest import Forest
from hangdoc.launch.marker import read_variable
from hangdoc.launch.table import Entry

UNIT = re.compile(r"/([^/]+\.service)(?:/|$)")
"""A systemd service in the path of a control group; the last one is the innermost."""

USER_UNIT = re.compile(r"/user@\d+\.service/")

KNOWN = {
    "supervisord": "supervisorctl stop NAME",
    "circusd": "circusctl stop NAME",
    "pm2": "pm2 stop NAME",
    "monit": "monit unmonitor NAME",
    "slurmstepd": "scancel JOBID",
    "raylet": "ray stop",
    "containerd-shim": "docker stop CONTAINER",
    "containerd-shim-runc-v2": "docker stop CONTAINER",
    "conmon": "podman stop CONTAINER",
    "kubelet": "kubectl delete pod POD",
}
"""What stops a launch for good, by the name of the manager above it."""

DIRECTORY_BOUND = {"runsv": "sv down {}", "s6-supervise": "s6-svc -d {}"}
"""Supervisors of one directory, which is their argument."""

MOST_ABOVE = 64
"""Scripts that are followed upwards; a table read while pids were reused could have a loop. Arbitrary."""

AMONG_SERVICES = {"user@", "init.scope", "sshd.service", "ssh.service", "cron.service", "docker.service"}
"""Services that start other people's programs: that one of them is above a launch does not mean that it restarts it."""


def supervisors(forest: Forest, top: Entry) -> tuple[Supervisor, ...]:
    """Name what restarts a launch, nearest first; top: its outermost member.

    Rule: a systemd service whose control group holds it; else its parent, if that is a known supervisor or a program
    that is neither shell nor terminal; else the nearest script above that has a loop and is no member, for it
    runs other programs, too. A home-made parent may or may not start it again: it is named, and no command
    that ends it is proposed.
    """
    found: list[Supervisor] = []
    parent = forest.table.get(top.ppid)
    if parent is not None and parent.kind in {"manager", "program", "host"} and top.ppid != 1:
        named = _named(forest, parent, top)
        found += [named] if named is not None else []
    elif (script := _looping(forest, parent)) is not None:
        name = f"script with a loop ({shown(script.title)})"
        # Who calls hangdoc knows what comes after it: his loop is no reason to doubt the end.
        loops = None if script.pid in forest.never else script.key
        found.append(Supervisor(name, script.pid, f"kill {script.pid}", loops=loops))
    unit = service_of(control_group(forest.proc, top.pid))
    if unit and not any(unit.startswith(one) for one in AMONG_SERVICES):
        user = " --user" if USER_UNIT.search(control_group(forest.proc, top.pid)) else ""
        found.append(Supervisor(f"systemd service {unit}", None, f"systemctl{user} stop {shlex.quote(unit)}"))
    return tuple(found)


def _looping(forest: Forest, above: Entry | None) -> Entry | None:
    """Return the nearest script above that may come to its launch a second time."""
    for _ in range(MOST_ABOVE):
        if above is None or above.kind != "wrapper" or above.pid == 1 or above.pid in forest.never:
            return None
        if may_repeat(forest.proc, above):
            return above
        above = forest.table.get(above.ppid)
    return None


def service_of(group: str) -> str:
    """Return the innermost systemd service of a control group's path.

    >>> service_of("/system.slice/llm.service"), service_of("/user.slice/session-3.scope")
    ('llm.service', '')
    """
    units = UNIT.findall(group)
    return units[-1] if units else ""


def _program(forest: Forest, top: Entry) -> str:
    """Return what supervisord calls a program, GROUP:NAME; its children are started with both. "NAME" when untold."""
    told = [read_variable(forest.proc, top.key, name) for name in ("SUPERVISOR_GROUP_NAME", "SUPERVISOR_PROCESS_NAME")]
    return shlex.quote(":".join(told)) if all(told) else "NAME"


def _named(forest: Forest, parent: Entry, top: Entry) -> Supervisor | None:
    name = base_name(parent.argv[0]) if parent.argv else parent.comm
    if parent.pid in forest.never:
        return None  # the caller of hangdoc itself: it waits for hangdoc
    if name in DIRECTORY_BOUND and len(parent.argv) > 1:
        return Supervisor(name, parent.pid, DIRECTORY_BOUND[name].format(shlex.quote(parent.argv[-1])))
    python = parse_python(parent.argv)
    program = python.program if python is not None else "".join(parent.argv[1:2])
    for part in (name, base_name(program)):
        if part in KNOWN:
            called = _program(forest, top) if part == "supervisord" else "NAME"
            return Supervisor(part, parent.pid, KNOWN[part].replace("NAME", called))
    if parent.kind != "program":
        return None
    return Supervisor(shown(parent.title), parent.pid, "")  # most of these start it once: a test runner, a notebook
