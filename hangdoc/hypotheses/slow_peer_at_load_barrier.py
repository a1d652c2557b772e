"""HD402: a rank gave up at the load barrier because others had not loaded: those others are slow or dead, not the one.

SGLang waits 300 s (0.4.6) to 480 s (0.5.23) for the other ranks after a rank has loaded its weights.
"""

from __future__ import annotations

import re

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.process import Process
from hangdoc.model.reading import Missing

_RANK = re.compile(r"rank (\d+) has loaded")


def _gave_up(case: Case) -> frozenset[int] | Unread:
    """Return the tensor ranks that said they had loaded and others had not."""
    log = case.features.log
    if isinstance(log, Missing):
        return Unread.of(log, "whether a rank gave up at the load barrier")
    texts = (_RANK.search(event.text) for event in log.value.crashes if event.name == "load-barrier")
    return frozenset(int(match.group(1)) for match in texts if match is not None)


def _a_rank_gave_up(case: Case) -> Outcome:
    """The log says that a rank had loaded its weights and others had not when the barrier's time was over."""
    found = _gave_up(case)
    if isinstance(found, Unread):
        return found
    if not found:
        return Absent("no rank gave up at the load barrier")
    listed = ", ".join(str(number) for number in sorted(found))
    return Present(f"its log says that rank {listed} had loaded and others had not")


def _others(case: Case) -> tuple[Process, ...]:
    """Return the ranks that did not say so, alive or gone."""
    found = _gave_up(case)
    gone = [departure.process for departure in (*case.features.departed, *case.features.zombies)]
    alive = [member.process for member in case.features.movers]
    known = {process.key: process for process in (*alive, *gone) if "tp" in process.rank}
    said = (frozenset[int]() if isinstance(found, Unread) else found) | _loaded(case)
    return tuple(known[key] for key in sorted(known) if known[key].rank["tp"] not in said)


def _loaded(case: Case) -> frozenset[int]:
    """Return the tensor ranks whose newest line of a load says that it ended: a draft model is loaded as well."""
    log = case.features.log
    if isinstance(log, Missing):
        return frozenset()
    loads = [event for event in log.value.milestones if event.name in _LOAD and "tp" in event.rank]
    newest = {event.rank["tp"]: event.name for event in loads}
    return frozenset(number for number, name in newest.items() if name == "load-weight-end")


_LOAD = frozenset({"load-weight-begin", "load-weight-end"})


def _others_are_known(case: Case) -> Outcome:
    """Ranks that did not say so are seen: still there, or dead."""
    others = _others(case)
    if others:
        return Present(f"{', '.join(signs.name_of(process) for process in others)} did not say so")
    return Absent("no rank is seen here that has not loaded")


def _went_on(case: Case) -> Outcome:
    """Excluding: the log names the end of the load, or that it is ready, so that it was another start that failed."""
    log = case.features.log
    if isinstance(log, Missing):
        return Unread.of(log, "whether the launch went on")
    later = [event for event in log.value.milestones if event.name in {"ready", "capture-end"}]
    last = max((event.offset for event in log.value.crashes if event.name == "load-barrier"), default=0)
    if any(event.offset > last for event in later):
        return Present("its log goes on to a later phase")
    return Absent("its log names no later phase")


def _culprits(case: Case) -> tuple[Culprit, ...]:
    reason = "had not loaded its weights when the others gave up"
    return tuple(signs.process_as_culprit(process, reason) for process in _others(case))


def _headline(case: Case) -> str:
    others = ", ".join(signs.name_of(process) for process in _others(case)) or "another rank"
    return f"The load barrier's time ran out: {others} had not loaded; whoever printed the error is a victim."


HYPOTHESIS = Hypothesis(
    id="HD402",
    name="slow-peer-at-load-barrier",
    verdict="crashed",
    suspects=signs.the_launch,
    essential=(_a_rank_gave_up,),
    supporting=(_a_rank_gave_up, _others_are_known),
    confirm_at=2,
    excluding=(_went_on,),
    headline=_headline,
    culprits=_culprits,
    action="Look at the ranks that did NOT print the error: slow storage, or killed for memory (dmesg).",
    playbook="slow-peer-at-load-barrier",
)
