"""What a Python stack says about its thread: activities from the inside out, and the phase of the launch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from hangdoc.engines._python import FRAMES as PYTHON_FRAMES
from hangdoc.model.engine import Activity, Engine, FrameRule
from hangdoc.model.log import Phase
from hangdoc.model.stack import Frame, Stack


@dataclass(frozen=True)
class Meaning:
    """A stack read through the tables.

    activities: of every frame that a rule knows, innermost first; phase: "unknown" when no frame tells.
    """

    activities: tuple[Activity, ...]
    phase: Phase

    def does(self, *activities: Activity) -> bool:
        """Tell whether any frame of the stack stands for one of these activities."""
        return not self.kinds.isdisjoint(activities)

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The activities, each once, in no order."""
        return frozenset(self.activities)


def read_stack(stack: Stack, engine: Engine) -> Meaning:
    """Read a stack, innermost frame first, through the engine's rules and then the common ones."""
    rules = [_rule_of(frame, position == 0, engine) for position, frame in enumerate(stack)]
    known = [rule for rule in rules if rule is not None]
    return Meaning(tuple(rule.activity for rule in known), _phase(known))


def _phase(rules: list[FrameRule]) -> Phase:
    """Return the phase that a stack shows.

    Rule: a compile anywhere is jit-compile; otherwise the outermost frame with a phase decides, because a forward
    inside a graph capture is capture, and an import inside a weight load is weight-load; only the event loop is
    refined by what runs in it. Fails when a table names a frame that other phases pass through too.
    """
    if any(rule.phase == "jit-compile" for rule in rules):
        return "jit-compile"
    phases = [rule.phase for rule in rules if rule.phase != "unknown"]
    if not phases:
        return "unknown"
    if phases[-1] == "ready" and "serving" in phases:
        return "serving"
    return phases[-1]


def bare_name(function: str) -> str:
    """Return a function's own name: from Python 3.11 on py-spy reports the qualified one.

    >>> bare_name("Scheduler.event_loop_overlap"), bare_name("main.<locals>.wait")
    ('event_loop_overlap', 'wait')
    """
    return function.rsplit(".", 1)[-1]


def is_file(path: str, suffix: str) -> bool:
    """Tell whether a path ends in these whole components; "" fits every path.

    >>> is_file("lib/python3.11/queue.py", "queue.py"), is_file("/srv/myqueue.py", "queue.py")
    (True, False)
    """
    return not suffix or path == suffix or path.endswith("/" + suffix)


@lru_cache(maxsize=65536)
def _rule_of(frame: Frame, innermost: bool, engine: Engine) -> FrameRule | None:
    for rule in (*engine.frames, *PYTHON_FRAMES):
        if rule.innermost and not innermost:
            continue
        if is_file(frame.file, rule.file) and rule.function.fullmatch(bare_name(frame.function)):
            return rule
    return None
