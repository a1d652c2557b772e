"""HD430: the launch ended as a whole while it was watched, because a part of it failed."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.features import Departure, Features
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._ending import end_of_all, ended_well, orderly_end, said
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.reading import Known, Missing


def _did_not_end_in_order(case: Case) -> Outcome:
    """Nobody is left, and an exit status or the log says that it was no orderly end.

    The launcher counts in any program; a rank, whose own failure a launcher may pass over, only in a server whose
    engine is known. A member whose status could not be read decides nothing.
    """
    features = case.features
    if not features.has_ended or features.is_log:
        return Absent("somebody is still there")
    failed = _failed(features)
    if failed:
        return Present(", ".join(f"{signs.name_of(one.process)} {_how(one)}" for one in failed))
    named = _log_names_a_failure(case)
    if isinstance(named, Present):
        return named
    end = orderly_end(features)
    return end if isinstance(end, Unread) else Absent("no exit status and no line of a log says that it failed")


def _launcher_failed(case: Case) -> Outcome:
    """The launcher ended with an exit code other than 0, or by a signal that does not ask."""
    launcher = [one for one in _failed(case.features) if one.process.key == case.features.launch.root]
    if not launcher:
        return Absent("the launcher itself is not seen to have failed")
    return Present(f"{signs.name_of(launcher[0].process)} {_how(launcher[0])}")


def _log_names_a_failure(case: Case) -> Outcome:
    """The log names a failure."""
    log = case.features.log
    crashes = log.value.crashes if isinstance(log, Known) else ()
    failures = [event for event in crashes if event.kind == "crash"]
    return Present(f"its log says: {failures[0].text}") if failures else Absent("its log names no failure")


def _was_announced(case: Case) -> Outcome:
    """Excluding: the log says that the server shuts down and names no failure, or everybody left in order.

    SGLang 0.5.8 ends itself with signal 9 when it has shut down. So a server whose log could not be read, and that
    only signal 9 ended, may have been shut down.
    """
    features = case.features
    named = _log_names_a_failure(case)
    if isinstance(named, Present):
        return Absent(named.because)
    end = orderly_end(features)
    if isinstance(end, Present) and not _failed(features):
        return end
    log = features.log
    if isinstance(log, Missing):
        killed_only = all(isinstance(one.how, Known) and one.how.value.signal == 9 for one in _failed(features))
        if signs.is_server(features) and killed_only and log.reason != "unsupported":
            return Unread.of(log, "whether a shutdown was announced")
        return Absent("no shutdown was announced that could be read")
    if log.value.phase == "shutdown":
        return Present("its log says that it was shutting down")
    return Absent("no shutdown was announced")


def _failed(features: Features) -> list[Departure]:
    """Return those whose end was a failure: the launcher, and in a known server ranks that nobody ended."""
    every = (*features.departed, *features.zombies)
    bad = [one for one in every if isinstance(one.how, Known) and not ended_well(one.how.value)]
    root = [one for one in bad if one.process.key == features.launch.root]
    ranks = [one for one in bad if one not in root and signs.is_vital(one.process, features) and _own_failure(one)]
    return sorted(root + (ranks if signs.is_server(features) else []), key=lambda one: (one.died_at, one.process.key))


def _own_failure(rank: Departure) -> bool:
    """Servers end their ranks with signal 9: it says nothing of the rank."""
    return isinstance(rank.how, Known) and rank.how.value.signal != 9


def _how(departure: Departure) -> str:
    return said(departure.how.value) if isinstance(departure.how, Known) else "ended"


def _culprits(case: Case) -> tuple[Culprit, ...]:
    return tuple(signs.process_as_culprit(one.process, _how(one)) for one in _failed(case.features)[:1])


def _headline(case: Case) -> str:
    return end_of_all(case.features)


HYPOTHESIS = Hypothesis(
    id="HD430",
    name="ended-by-failure",
    verdict="crashed",
    suspects=signs.the_launch,
    essential=(_did_not_end_in_order,),
    supporting=(_launcher_failed, _log_names_a_failure),
    confirm_at=2,
    excluding=(_was_announced,),
    headline=_headline,
    culprits=_culprits,
    action="Read the first failure in the log, above the last lines; who ended first is named above.",
    playbook="ended-by-failure",
)
