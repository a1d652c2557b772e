"""HD240: a thread sleeps in native code and keeps the interpreter lock, while others wait for the lock."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import waiting
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._peers import is_waited_for
from hangdoc.hypotheses.gil_held import keepers, keeps_the_lock, sentence_of, starvation_of
from hangdoc.hypotheses.python_busy_loop import is_in
from hangdoc.model.reading import Missing


def _sleeps(case: Case) -> Outcome:
    """The holder did not execute one instruction."""
    name = signs.name_of(case.patient.process)
    found = starvation_of(case)
    if isinstance(found, Missing):
        return Unread.of(found, f"who holds the interpreter lock of {name}")
    if found.value is None:
        return Absent(f"no thread of {name} keeps the interpreter lock from others")
    holder = found.value.holder_tid
    clocks = case.patient.clocks
    if isinstance(clocks, Missing):
        return Unread.of(clocks, f"threads of {name}")
    if holder not in clocks.value:
        return Unread(f"whether thread {holder} of {name} runs")
    if clocks.value[holder].is_still:
        return Present(f"thread {holder} of {name} sleeps and holds the interpreter lock")
    return Absent(f"thread {holder} of {name} holds the interpreter lock and runs")


def _will_not_give_it_back(case: Case) -> Outcome:
    """A server waits for the process, or only a thread that needs the lock itself could wake the holder.

    Why: the holder may sleep for a moment more, or wait for a device, whoever waits for it meanwhile. A lock without a
    timeout that only its own process releases is another matter: nobody there runs Python now.
    """
    found = starvation_of(case)
    if isinstance(found, Missing) or found.value is None:
        return Unread("who holds the interpreter lock")
    holder = found.value.holder_tid
    wait = waiting(case.patient, holder)
    if not isinstance(wait, Missing) and wait.value is not None and wait.value.is_parked:
        return Present(f"thread {holder} waits for a lock of its own process, without a timeout")
    waited = is_waited_for(case)
    return waited if isinstance(waited, Present) else Unread(f"{sentence_of(case)}; {waited.because}")


HYPOTHESIS = Hypothesis(
    id="HD240",
    name="gil-held-asleep",
    verdict="blocked",
    suspects=signs.each_mover,
    essential=(
        _sleeps,
        signs.nothing_progresses,
        keeps_the_lock,
        signs.positive_or_patience(_will_not_give_it_back),
        signs.readings_are_steady,
    ),
    supporting=(keeps_the_lock, _sleeps, signs.log_is_silent_too_long),
    confirm_at=3,
    excluding=(is_in("import", "compile"), signs.nobody_died),
    headline=lambda case: f"{signs.name_of(case.patient.process)} is kept by a sleeping thread: {sentence_of(case)}.",
    culprits=keepers,
    action="Look at the native call under the frame named above: it waits and never gives the interpreter lock back.",
    playbook="gil-held",
)
