"""Find what was only there to start one launch: scripts, `sh -c`, timeout, and the tee beside it."""

from __future__ import annotations

from hangdoc.launch.age import is_older
from hangdoc.launch.forest import Forest, Home
from hangdoc.launch.table import Entry


def wrappers(forest: Forest, root: int) -> dict[int, Home]:
    """Return the wrappers above a launch's root and their other, small children, as members of it.

    Rule: a wrapper belongs to the launch if everything else below it is a companion (tee, sleep, another wrapper
    around those) or is never a member. A script that also runs a second launch, or any other program of its own,
    belongs to nobody. It works because such a script has no purpose but the launch; it fails for a script that is going
    to start something else later: it is a member until then and stays one.
    """
    found: dict[int, Home] = {}
    current = forest.table.get(root)
    while current is not None and (above := _wrapper_above(forest, current)) is not None:
        others = [e for e in forest.children.get(above.pid, []) if e.pid != current.pid and e.pid not in forest.never]
        small = [_companions(forest, entry) for entry in others]
        if None in small:
            break
        found[above.pid] = Home(root, f"started the launch of {root}")
        found.update({entry.pid: Home(root, f"child of {entry.ppid}") for group in small for entry in group or ()})
        current = above
    return found


def _wrapper_above(forest: Forest, entry: Entry) -> Entry | None:
    parent = forest.table.get(entry.ppid)
    is_wrapper = parent is not None and parent.kind == "wrapper" and parent.pid not in forest.never
    # The first process of a container is a wrapper too (tini, sh -c), but adopts what is not its own.
    return parent if is_wrapper and parent is not None and is_older(parent.key, entry.key) else None


def _companions(forest: Forest, top: Entry) -> list[Entry] | None:
    """Return a subtree if it holds nothing but companions and wrappers, otherwise None."""
    if top.state in "ZX":
        return []
    if top.kind not in {"companion", "wrapper"}:
        return None
    found = [top]
    for child in forest.children.get(top.pid, []):
        below = _companions(forest, child)
        if below is None:
            return None
        found.extend(below)
    return found
