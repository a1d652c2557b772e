"""Prove that nothing is left: memory, ports, files; and say what came back by itself."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from hangdoc.ending.inventory import listened, network
from hangdoc.ending.memory import wait_for_memory, was_used
from hangdoc.ending.plan import Plan
from hangdoc.ending.records import After, Ended, GpuProof, LookAlike, Port, PortProof
from hangdoc.ending.remains import clear, survey
from hangdoc.ending.roll import read_forest
from hangdoc.launch.age import is_older
from hangdoc.launch.complaints import shown
from hangdoc.launch.forest import Forest
from hangdoc.launch.ports import holders

RESPAWN_S = 1.0
"""How long to look for a launch that its supervisor starts again, where there is one. Arbitrary: systemd waits 0.1 s,
supervisord 1 s; one that waits longer is only named."""

POLL_S = 0.1


def prove(plan: Plan, ended: Ended, gpu_timeout_s: float, proc: Path) -> After:
    """Compare with what there was before; wait for GPU memory, and for who might start the launch again."""
    gpus: tuple[GpuProof, ...] = ()
    unread = remedy = ""
    if was_used(plan.before):
        gpus, reading = wait_for_memory(plan.before, plan.read_gpus, gpu_timeout_s)
        unread, remedy = reading.unread or plan.before.gpus.unread, reading.remedy or plan.before.gpus.remedy
    forest = read_forest(proc)
    removals = clear(plan.before.things, survey(proc, forest.table, plan.traits.users, plan.before.things))
    ports = _ports(forest, plan.before.ports)
    return After(gpus, unread, remedy, ports, removals, _returned(plan, ended, proc))


def _ports(forest: Forest, ports: Sequence[Port]) -> tuple[PortProof, ...]:
    """Say which ports are free again: each network namespace's table is read once."""
    nets: dict[str, Path] = {}
    wanted = {port.namespace for port in ports}
    for pid in forest.table if wanted else ():
        if (name := network(forest.proc, pid)) in wanted:
            nets.setdefault(name, forest.proc / str(pid) / "net")
    taken = {name: listened(net) for name, net in nets.items()}
    everywhere = listened(forest.proc / "net")
    proofs = (
        _taken(forest, port)
        if port.number in taken.get(port.namespace, everywhere if not port.namespace else set())
        else PortProof(port.number, True, "free", port.listened)
        for port in ports
    )
    return tuple(proofs)


def _taken(forest: Forest, port: Port) -> PortProof:
    """Name who has a port now."""
    found = holders(forest.proc, forest.table, port.number)
    never = "" if port.listened else "; the launch had not listened there, so it does not count"
    if found.is_hidden:
        return PortProof(port.number, False, f"taken; by whom may not be looked at{never}", port.listened)
    here = [pid for pid in sorted(found.pids) if not port.namespace or network(forest.proc, pid) == port.namespace]
    if not here:
        return PortProof(port.number, True, "free", port.listened)
    names = ", ".join(f"pid {pid} ({shown(forest.table[pid].title)})" for pid in here)
    return PortProof(port.number, False, f"taken by {names}{never}", port.listened)


def _returned(plan: Plan, ended: Ended, proc: Path) -> tuple[LookAlike, ...]:
    """Return launches with the command line of the one that ended, by the same parent or a supervisor."""
    commands = {one.entry.argv for one in ended.gone if one.entry.sighting.is_launcher or one.key == plan.traits.root}
    until_s = time.monotonic() + (RESPAWN_S if plan.roll.supervisors else 0.0)
    while True:
        again = _started_again(read_forest(proc), plan, commands)
        if again or time.monotonic() >= until_s:
            return again
        time.sleep(POLL_S)


def _first(plan: Plan, parent: int) -> str:
    """Say what ends a program that was seen to start the launch again; the known managers have their own command."""
    is_own = any(one.pid == parent and not one.command for one in plan.roll.supervisors)
    return f" (to end it, first: kill {parent})" if is_own else ""


def _started_again(forest: Forest, plan: Plan, commands: set[tuple[str, ...]]) -> tuple[LookAlike, ...]:
    known = {one.key for one in plan.roll.members} | {one.key for one in plan.roll.look_alikes}
    parents = {one.pid for one in plan.roll.supervisors} | {one.entry.ppid for one in plan.roll.members}
    return tuple(
        LookAlike(one.key, one.title, f"started again by {one.ppid}{_first(plan, one.ppid)}")
        for one in forest.table.values()
        if one.argv
        and one.argv in commands
        and one.key not in known
        and not is_older(one.key, plan.traits.root)
        and (one.ppid in parents or None in parents)
    )
