"""Whether a launch that ended did so in order: told by how its processes ended, and in which order."""

from __future__ import annotations

from hangdoc.criteria import Absent, Outcome, Present, Unread
from hangdoc.features.features import Departure, Features
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.ending import Ended
from hangdoc.model.reading import Known, Missing

ASKED_TO_END = frozenset({1, 2, 15})
"""SIGHUP, SIGINT, SIGTERM: the signals that ask; others (SIGKILL, SIGSEGV, SIGABRT, SIGQUIT) do not."""

SHELL_OFFSET = 128
"""Exit code of a program that ended because of signal N, as shells and servers give it: 128 + N."""

SIGKILL = 9
TOGETHER_ROUNDS = 5
"""Rounds within which a member that was killed has to end before its launcher: servers kill their ranks and leave at
once, while one whose rank was killed by somebody else goes on for longer. Arbitrary."""


def ended_well(how: Ended) -> bool:
    """Tell whether a process ended with 0, or because it was asked to."""
    if how.signal is not None:
        return how.signal in ASKED_TO_END
    return how.code == 0 or how.code in {SHELL_OFFSET + number for number in ASKED_TO_END}


def orderly_end(features: Features) -> Outcome:
    """Everybody has left, the launcher with status 0 or because it was asked to, and no rank failed before it.

    A rank that was killed was ended by its launcher only where the log says nothing of a failure and the launcher left
    within some rounds: SGLang kills its ranks when it has shut down. A launcher may leave with 0 after a crash as well,
    which then stands in the log or in the exit status of a rank.
    """
    if not features.has_ended:
        return Absent("somebody is still there")
    ends = {death.process.key: death for death in (*features.departed, *features.zombies)}
    launcher = ends.get(features.launch.root)
    if launcher is None:
        return Unread("how the launcher ended")
    if isinstance(launcher.how, Missing):
        return Unread.of(launcher.how, f"how {signs.name_of(launcher.process)} ended")
    if not ended_well(launcher.how.value):
        return Absent(f"{signs.name_of(launcher.process)} {said(launcher.how.value)}")
    others = [_rank(features, launcher, death) for key, death in sorted(ends.items()) if key != launcher.process.key]
    for kind in (Absent, Unread):
        for outcome in others:
            if isinstance(outcome, kind):
                return outcome
    return Present(f"everybody has left, {signs.name_of(launcher.process)} last: it {said(launcher.how.value)}")


def end_of_all(features: Features) -> str:
    """Return one sentence on a launch of which nobody is left, where nothing explains its end for certain."""
    ended = "The launch ended while it was watched"
    crashes = features.log.value.crashes if isinstance(features.log, Known) else ()
    if crashes:
        return f"{ended}; its log says: {crashes[0].text.rstrip('.')}."
    end = orderly_end(features)
    return f"{ended}; not read: {end.because}." if isinstance(end, Unread) else f"{ended}: {end.because}."


def _rank(features: Features, launcher: Departure, death: Departure) -> Outcome:
    name, how = signs.name_of(death.process), death.how
    if not signs.is_vital(death.process, features):
        return Present(f"{name} comes and goes")
    if isinstance(how, Missing):
        return Unread.of(how, f"how {name} ended")
    if ended_well(how.value):
        return Present(f"{name} {said(how.value)}")
    if how.value.signal != SIGKILL or launcher.died_at - death.died_at > TOGETHER_ROUNDS:
        return Absent(f"{name} {said(how.value)}")
    if isinstance(features.log, Missing):
        return Unread.of(features.log, f"whether its launcher killed {name}")
    return Present(f"{name} was killed as its launcher left")


def said(how: Ended) -> str:
    """Return how a process ended, as the end of a sentence."""
    return f"was ended by signal {how.signal}" if how.signal is not None else f"ended with exit code {how.code}"
