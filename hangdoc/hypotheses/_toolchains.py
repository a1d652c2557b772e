"""Slow starts of one kind of compiler each: who asks for it shows in the stack or the log, and something moves."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Sign, Unread
from hangdoc.features.activity import activity
from hangdoc.features.dumps import ThreadHistory
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._waits import differing, worker_threads
from hangdoc.hypotheses.compiling import compilers_run
from hangdoc.model.reading import Known, Missing
from hangdoc.model.stack import Frame


@dataclass(frozen=True)
class Toolchain:
    """What gives a toolchain away. files: pattern of its frames' files; events: names of its lines in the log."""

    name: str
    files: re.Pattern[str]
    events: frozenset[str] = frozenset()

    def is_in(self, thread: ThreadHistory) -> bool:
        """Tell whether a thread's newest stack is inside it; to import it is no compile, unless one runs in there."""
        stack = thread.last.stack
        if not thread.last.meaning.does("compile"):
            stack = stack[1 + max((at for at, frame in enumerate(stack) if _imports(frame)), default=-1) :]
        return any(_is_of(self.files, frame.file) for frame in stack)


def _imports(frame: Frame) -> bool:
    """Tell whether a frame is the interpreter's own for loading a module."""
    return frame.file.startswith("<frozen importlib")


@lru_cache(maxsize=16384)
def _is_of(files: re.Pattern[str], file: str) -> bool:
    """Tell whether a pattern is found in the name of a file, of which a launch has few."""
    return files.search(file) is not None


def _asks(tool: Toolchain) -> Sign:
    def sign(case: Case) -> Outcome:
        name, threads = signs.name_of(case.patient.process), worker_threads(case.patient)
        if isinstance(threads, Missing):
            return Unread.of(threads, f"stack of {name}")
        for thread in differing(threads.value):
            if tool.is_in(thread):
                return Present(f"{name} is inside {tool.name}: {signs.where(thread)}")
        return Absent(f"no thread of {name} is inside {tool.name}")

    sign.__doc__ = f"A working thread of it is inside {tool.name}."
    return sign


def _moves(case: Case) -> Outcome:
    """Compilers run, it shows work, its stack goes from place to place, or its log goes on."""
    name = signs.name_of(case.patient.process)
    log = case.features.log
    bars = [event.text for event in log.value.fresh if event.kind == "progress"] if isinstance(log, Known) else []
    if bars:
        return Present(f"its log goes on: {bars[-1]}")
    compilers = compilers_run(case)
    if isinstance(compilers, Present):
        return compilers
    done, main = activity(case.patient), case.patient.main
    if isinstance(done, Missing) or isinstance(compilers, Unread):
        return Unread(f"whether a compiler of {name} runs")
    if done.value == "spins":
        stacks = len({view.stack for view in main.value.views}) if isinstance(main, Known) else 0
        if stacks >= FEWEST_PLACES and isinstance(main, Known) and main.value.loop() is None:
            return Present(f"{name} goes on through its compiler: {stacks} different stacks")
        return Unread(f"{name} {signs.describe(done.value)}: a long step of a compiler and a loop look alike")
    return Absent(f"no compiler runs and {name} {signs.describe(done.value)}")


FEWEST_PLACES = 3
"""Different stacks, in no single function, that show a compiler that goes on. Arbitrary above two."""


def _log_names(tool: Toolchain) -> Sign:
    def sign(case: Case) -> Outcome:
        log = case.features.log
        if isinstance(log, Missing):
            return Unread.of(log, "what its log says")
        said = [event for event in (*log.value.milestones, *log.value.fresh) if event.name in tool.events]
        return Present(f"its log names it: {said[-1].text}") if said else Absent(f"its log does not name {tool.name}")

    sign.__doc__ = f"The log names {tool.name}."
    return sign


def compiles_with(tool: Toolchain, ident: str, name: str, action: str) -> Hypothesis:
    """Return the hypothesis that a rank waits for one toolchain, and that this moves."""
    asks = _asks(tool)
    return Hypothesis(
        id=ident,
        name=name,
        verdict="slow-start",
        suspects=signs.each_mover,
        essential=(asks, _moves),
        supporting=(asks, _moves, *((_log_names(tool),) if tool.events else ())),
        excluding=(signs.nobody_died,),
        headline=lambda case: f"{signs.name_of(case.patient.process)} compiles with {tool.name}, and that gets on.",
        culprits=lambda case: (signs.culprit(case.patient, f"compiles with {tool.name}"),),
        action=action,
        playbook=name,
    )
