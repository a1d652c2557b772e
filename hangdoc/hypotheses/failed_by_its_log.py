"""HD410: the log says that a process failed; the others suffered from it."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.features import Features
from hangdoc.features.startup import rank_of
from hangdoc.hypotheses import _log_signs as logs
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._log_advice import advice
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.log import LogEvent
from hangdoc.model.reading import Missing


def _names_a_failure(case: Case) -> Outcome:
    """A line says that a process failed: an exception that ended it, a signal, an exit code, an error of the GPU."""
    if isinstance(case.features.log, Missing):
        return Unread.of(case.features.log, "whether something failed")
    first = _first(case.features)
    if first is None:
        return Absent("the log names no failure")
    if first.victim and not any(event.kind == "crash" for event in logs.lasting(case.features)):
        return Unread(f"whether anybody failed: its log only says: {_by(first)}{first.text}")
    if _of_helpers_only(case.features):
        return Unread(f"whether that ended its process: {_by(first)}{first.text}")
    return Present(f"its log says: {_by(first)}{first.text}{logs.place(first)}")


def _of_helpers_only(features: Features) -> bool:
    """Tell whether all that failed since the server was ready are threads: a process lives on without one of them."""
    log = features.log
    if isinstance(log, Missing):
        return False
    ready = [event.offset for event in log.value.milestones if event.name == "ready"]
    found = logs.lasting(features)
    return bool(ready) and bool(found) and all(_is_of_thread(one) and one.offset > ready[-1] for one in found)


def _is_of_thread(event: LogEvent) -> bool:
    return event.name == "thread-exception" or "thread" in event.numbers


def _mixed(case: Case) -> Outcome:
    """Tracebacks of several ranks stand line by line between each other: whose end is whose cannot be told."""
    first = _first(case.features)
    if first is not None and "mixed" in first.numbers:
        return Present("tracebacks of several ranks are mixed line by line, so that it is not told whose this is")
    return Absent("its traceback is not mixed with others")


def _first(features: Features) -> LogEvent | None:
    """Return the failure that the others follow from; where the launch went on after all of them, the first one."""
    return logs.first_cause(features) or next(iter(logs.failures(features)), None)


def _by(event: LogEvent) -> str:
    return f"{logs.rank_words(rank_of(event))}: " if event.rank else ""


def _watchdog_came_first(case: Case) -> Outcome:
    """A watchdog fired before anything failed: the server ended a hang."""
    fired = logs.watchdogs(case.features)
    if logs.first_is_older(fired, logs.own_failures(case.features) or logs.failures(case.features)):
        return Present(f"a watchdog fired before that: {fired[0].text}")
    return Absent("no watchdog fired before that")


def _it_went_on(case: Case) -> Outcome:
    """Batches or steps of the start came after every failure: all were survived."""
    found = logs.failures(case.features)
    return logs.went_on(case.features, found[-1] if found and not logs.lasting(case.features) else None)


def _one_failed_by_itself(case: Case) -> Outcome:
    """The failure is somebody's own, not that of one who waited."""
    own = logs.own_failures(case.features)
    return Present("the first failure is somebody's own") if own else Absent("only those who suffered are in the log")


def _others_suffered(case: Case) -> Outcome:
    """Others say that they suffered from it, or the server says that it ends."""
    victims = [event for event in logs.failures(case.features) if event.victim]
    return Present(f"then its log says: {victims[0].text}") if victims else Absent("nobody else says that it suffered")


def _culprits(case: Case) -> tuple[Culprit, ...]:
    """Return whom the first failure names; where that is nobody, the one process that a signal ended."""
    first = _first(case.features)
    if first is None:
        return ()
    if named := logs.culprit_of(case.features, first):
        return named
    ended = [event for event in logs.lasting(case.features) if logs.ended_hard(event)]
    return logs.culprit_of(case.features, ended[0]) if len(ended) == 1 and first.name in _OF_SIGNALS else ()


_OF_SIGNALS = frozenset({"fatal-python", "terminate"})
"""What a process prints that a signal then ends, without saying which one it is."""


def _headline(case: Case) -> str:
    first = _first(case.features)
    if first is None:
        return "A process failed."
    if first.victim:
        return f"Somebody failed; the log has only who suffered from it: {first.text}."
    return f"A process failed: {_by(first)}{first.text}{logs.place(first)}."


def _action(case: Case) -> str:
    log = case.features.log
    return advice(_first(case.features), "" if isinstance(log, Missing) else log.value.path)


HYPOTHESIS = Hypothesis(
    id="HD410",
    name="failed-by-its-log",
    verdict="crashed",
    suspects=signs.the_launch,
    essential=(logs.log_is_all, _names_a_failure),
    supporting=(_one_failed_by_itself, _others_suffered),
    contrary=(_mixed,),
    confirm_at=2,
    excluding=(_watchdog_came_first, _it_went_on, logs.in_order),
    headline=_headline,
    culprits=_culprits,
    action="Read the first failure in the log and the traceback there; later failures are mostly victims.",
    action_in=_action,
    playbook="failed-by-its-log",
)
