"""Say whether what a launch shares with others (its marker, its control group) is the launch's alone."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import replace

from hangdoc.ending.kinship import Traits, control_group
from hangdoc.ending.supervision import AMONG_SERVICES, service_of
from hangdoc.launch.commands import base_name
from hangdoc.launch.forest import Forest
from hangdoc.launch.marker import read_marker
from hangdoc.launch.table import Entry

MARKER_SHARED = "carries the marker of this launch, but so do others that are no members"
GROUP_SHARED = "in the control group of the launch ({group}), but so are others that are no members"
GROUP_ALONE = "in the control group of the launch ({group}), but nothing else ties it to the launch"
GROUP_OLDER = "in the control group of the launch ({group}), which may not have been made for it"

MOST_ABOVE = 64
"""Ancestors that are followed upwards; a table read while pids were reused could have a loop. Arbitrary."""


def without_shared(traits: Traits) -> Traits:
    """Return the traits by which a member is known whoever else has the marker or is in the control group."""
    return replace(traits, marker="", cgroups={})


def doubted(traits: Traits, forest: Forest, members: Set[int]) -> Traits:
    """Return the traits with why the marker or the control group proves nothing here.

    Rule: each proves descent only when nobody but members has it, apart from one program without a parent and what
    that started. One login's scope, one job's group, or one command that starts two launches marks them all alike. The
    control group must have been made for the launch besides: only that of a systemd service certainly was. Another one
    says nothing about a root that was adopted; where the root has its parent it proves descent together with a second
    tie, for the user may have put a program of his own into it.

    members: pids of all that are known by other ties.
    """
    marker_doubt = cgroup_doubt = ""
    is_alone = False
    if traits.marker and _is_shared(forest, members, lambda one: read_marker(forest.proc, one.key) == traits.marker):
        marker_doubt = MARKER_SHARED
    if traits.cgroups:
        group = next(iter(traits.cgroups))
        is_adopted = _is_adopted(traits, forest)
        service = service_of(group)
        if is_adopted and not (service and not any(service.startswith(one) for one in AMONG_SERVICES)):
            cgroup_doubt = GROUP_OLDER.format(group=group)
        elif _is_shared(forest, members, lambda one: control_group(forest.proc, one.pid) in traits.cgroups):
            cgroup_doubt = GROUP_SHARED.format(group=group)
        elif not is_adopted:
            cgroup_doubt, is_alone = GROUP_ALONE.format(group=group), True
    return replace(traits, marker_doubt=marker_doubt, cgroup_doubt=cgroup_doubt, is_alone=is_alone)


def _is_adopted(traits: Traits, forest: Forest) -> bool:
    """Say whether the root's parent may be none, but who adopts orphans: pid 1, or the systemd of a user."""
    root = forest.table.get(traits.root.pid)
    parent = forest.table.get(root.ppid) if root is not None else None
    if parent is None or parent.pid == 1:
        return True
    return parent.kind == "manager" and base_name(parent.argv[0] if parent.argv else parent.comm) == "systemd"


def _is_shared(forest: Forest, members: Set[int], holds: Callable[[Entry], bool]) -> bool:
    others = [one for one in forest.table.values() if one.pid not in members and one.kind != "kernel"]
    tops: set[int] = set()
    for one in (one for one in others if one.state not in "ZX" and holds(one)):
        top = _top(one, forest, members)
        if top.pid in members:
            continue
        if not _may_be_lost(top, forest):
            return True
        tops.add(top.pid)
    return len(tops) > 1


def _top(entry: Entry, forest: Forest, members: Set[int]) -> Entry:
    """Return the outermost ancestor, or the first that is a member."""
    for _ in range(MOST_ABOVE):
        parent = forest.parent(entry)
        if entry.pid in members or parent is None:
            break
        entry = parent
    return entry


def _may_be_lost(top: Entry, forest: Forest) -> bool:
    """Say whether somebody without a parent may be a lost part of the launch: a launch, a shell, hangdoc may not."""
    is_program = top.kind in {"program", "companion", "wrapper"} and top.pid not in forest.never
    return is_program and not top.sighting.is_launcher and not top.sighting.is_kin
