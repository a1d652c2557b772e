"""The merged stacks: one tree of where the ranks stand, and every Python thread by its stack."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hangdoc.features.dumps import ThreadHistory
from hangdoc.features.ranks import StackClass, compare, without_wrappers
from hangdoc.hypotheses._signs import place_of
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known
from hangdoc.model.stack import Frame, Stack
from hangdoc.report.material import Material
from hangdoc.report.material import together as named
from hangdoc.report.page.blocks import folded, many, note, section
from hangdoc.report.page.markup import Html, code, each, element, together
from hangdoc.report.ranks import MOTION_WORDS

MOST_GROUPS = 60
"""Stacks of threads that are listed, those of who has to move first. Arbitrary: more are pollers."""

MOST_OWNERS = 40
"""Threads that are named under one stack. Arbitrary."""

MOST_FRAMES = 120
"""Frames shown of one stack, the inner ones first. Arbitrary: a recursion that went wild has thousands."""


@dataclass
class _Node:
    """A frame in the tree; children: by function and file, in the order in which they came."""

    frame: Frame
    classes: list[tuple[StackClass, bool]] = field(default_factory=list)
    ends: list[tuple[StackClass, bool]] = field(default_factory=list)
    children: dict[tuple[str, str], _Node] = field(default_factory=dict)


def stacks(material: Material) -> Html:
    """Return the section."""
    return section("stacks", "Where the ranks stand", _tree(material), _threads(material))


def _tree(material: Material) -> Html:
    classes = [(one, one in compared.odd) for compared in compare(material.seen) for one in compared.classes]
    if not classes:
        return note("No Python stack of a rank could be read. Why, stands under What could not be read.")
    root = _Node(Frame("", "", 0))
    for one, odd in classes:
        _enter(root, one, odd)
    told = note(
        "The main threads, from the outside in. Ranks that stand in one place share a branch; where a branch splits, "
        "the ranks went different ways."
    )
    branches = each(_branch(child, material) for child in root.children.values())
    return together(told, element("ul", branches, class_="tree"))


def _enter(root: _Node, one: StackClass, odd: bool) -> None:
    node = root
    for frame in reversed(without_wrappers(one.stack)[:MOST_FRAMES]):
        node = node.children.setdefault((frame.function, frame.file), _Node(frame))
        node.classes.append((one, odd))
    node.ends.append((one, odd))


def _branch(node: _Node, material: Material) -> Html:
    """Return a branch: frames that nobody leaves at are one run, then who ends here, then where it splits."""
    run = [node.frame]
    while len(node.children) == 1 and not node.ends:
        (node,) = node.children.values()
        run.append(node.frame)
    frames = element("ol", each(element("li", _frame(frame)) for frame in run), class_="run")
    ends = each(_end(one, odd, material) for one, odd in node.ends)
    deeper = each(_branch(child, material) for child in node.children.values())
    count = sum(len(one.members) for one, _ in node.classes)
    is_split = len(node.children) + len(node.ends) > 1
    below = element("ul", deeper) if node.children else None
    if len(run) > LONG_RUN:
        outer = element("ol", each(element("li", _frame(frame)) for frame in run[:-LONG_RUN]), class_="run")
        inner = element("ol", each(element("li", _frame(frame)) for frame in run[-LONG_RUN:]), class_="run")
        frames = together(folded(many(len(run) - LONG_RUN, "outer frame"), outer), inner)
    split = element("p", f"{many(count, 'rank')} come this far", class_="small") if is_split else None
    return element("li", frames, split, ends, below)


LONG_RUN = 6
"""Frames of a run that are not folded. Arbitrary: from the wait to what it belongs to."""


def _frame(frame: Frame) -> Html:
    return code(place_of(frame))


def _end(one: StackClass, odd: bool, material: Material) -> Html:
    ranks = named(material.processes[key] for key in one.members if key in material.processes)
    accused = any(key.pid in material.accused for key in one.members)
    pids = ", ".join(str(key.pid) for key in one.members[:MOST_PIDS])
    more = f" and {len(one.members) - MOST_PIDS} more" if len(one.members) > MOST_PIDS else ""
    return element(
        "p",
        element("strong", ranks, class_="accused" if accused or odd else None),
        f" {MOTION_WORDS[one.motion]} here (pid {pids}{more})",
        element("span", "the odd one out", class_="tag") if odd else None,
        element("span", material.accusation, class_="tag") if accused else None,
        class_="end",
    )


MOST_PIDS = 8
"""Pids of a class that are named. Arbitrary: a line."""


@dataclass(frozen=True)
class _Owner:
    key: ProcessKey
    thread: ThreadHistory


def _threads(material: Material) -> Html | None:
    groups: dict[Stack, list[_Owner]] = {}
    for key, member in material.seen.members.items():
        if isinstance(member.dumps, Known):
            for thread in member.dumps.value.threads.values():
                groups.setdefault(thread.last.stack, []).append(_Owner(key, thread))
    if not groups:
        return None
    ordered = sorted(groups.items(), key=lambda item: _rank(item[1], material))
    shown = each(_group(stack, owners, material) for stack, owners in ordered[:MOST_GROUPS])
    left = sum(len(owners) for _, owners in ordered[MOST_GROUPS:])
    count = sum(map(len, groups.values()))
    more = note(f"{many(left, 'more thread')} in {len(ordered) - MOST_GROUPS} other places.") if left else None
    return together(
        element("h3", f"{many(count, 'Python thread')} in {many(len(groups), 'place')}"),
        element("div", shown, class_="places"),
        more,
    )


def _rank(owners: Sequence[_Owner], material: Material) -> tuple[bool, bool, int, ProcessKey]:
    accused = any(one.key.pid in material.accused and one.thread.tid == one.key.pid for one in owners)
    return (not accused, all(one.thread.is_helper for one in owners), -len(owners), owners[0].key)


def _group(stack: Stack, owners: Sequence[_Owner], material: Material) -> Html:
    where = place_of(stack[0]) if stack else "no frame"
    accused = any(one.key.pid in material.accused and one.thread.tid == one.key.pid for one in owners)
    summary = together(
        element("strong", _whose(owners, material), class_="accused" if accused else None), " ", code(where)
    )
    frames = element("ol", each(element("li", _frame(frame)) for frame in stack[:MOST_FRAMES]), class_="run")
    named_owners = [_named(one, material) for one in owners[:MOST_OWNERS]]
    more = [f"and {len(owners) - MOST_OWNERS} more"] if len(owners) > MOST_OWNERS else []
    return folded(summary, frames, note(", ".join([*named_owners, *more])))


def _whose(owners: Sequence[_Owner], material: Material) -> str:
    if len(owners) == 1:
        only = owners[0]
        return f"{material.name(only.key.pid)}, {_thread(only)}"
    keys: Iterable[ProcessKey] = dict.fromkeys(one.key for one in owners)
    ranks = named(material.processes[key] for key in keys if key in material.processes)
    return f"{many(len(owners), 'thread')} of {ranks}"


def _thread(owner: _Owner) -> str:
    return (
        "main thread" if owner.thread.tid == owner.key.pid else owner.thread.last.name or f"thread {owner.thread.tid}"
    )


def _named(owner: _Owner, material: Material) -> str:
    held = ", holds the interpreter lock" if owner.thread.last.owns_gil else ""
    return f"{material.name(owner.key.pid)} {owner.key.pid}/{owner.thread.tid} {_thread(owner)}{held}"
