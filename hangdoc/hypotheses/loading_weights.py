"""HD302: a rank is building the model or loading its weights, and it moves."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import activity
from hangdoc.features.features import Member
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._waits import worker_threads
from hangdoc.hypotheses.gil_held import starvation_of
from hangdoc.model.reading import Missing


def _moves(case: Case) -> Outcome:
    """It shows work, or its loading threads wake now and then, and not to ask for an interpreter lock that is kept."""
    done = activity(case.patient)
    name = signs.name_of(case.patient.process)
    if isinstance(done, Missing):
        return Unread.of(done, f"what {name} does")
    sentence = f"{name} {signs.describe(done.value)}"
    if done.value == "spins":
        return Unread(f"{sentence}: computing in place and a loop look alike")
    if done.value == "stirs" and not _stirs_in_its_own_code(case.patient):
        return Unread(f"{sentence}: it may only look again and again whether it can go on")
    if done.value == "stirs":
        kept = starvation_of(case)
        if isinstance(kept, Missing):
            return Unread.of(kept, f"whether the threads of {name} that wake only ask for the interpreter lock")
        if kept.value is not None:
            return Unread(f"{sentence}: its threads may only ask for the interpreter lock")
    return Absent(sentence) if done.value == "still" else Present(sentence)


_LOOKS_AGAIN = frozenset({"lock", "queue", "future", "file-lock", "rendezvous", "collective", "parent-wait"})
"""Waits that wake to look again, in a hung process too."""


def _stirs_in_its_own_code(member: Member) -> bool:
    """Tell whether a thread that wakes does so in the loader, and not in a library's wait with a timeout."""
    threads, clocks = worker_threads(member), member.clocks
    if isinstance(threads, Missing) or isinstance(clocks, Missing):
        return False
    return any(
        thread.tid in clocks.value
        and not clocks.value[thread.tid].is_still
        and not _LOOKS_AGAIN.intersection(thread.last.meaning.activities[:1])
        for thread in threads.value
    )


def _bar_advances(case: Case) -> Outcome:
    log = case.features.log
    if isinstance(log, Missing):
        return Unread.of(log, "the progress bar of its log")
    bars = [event.text for event in log.value.fresh if event.kind == "progress"]
    return Present(f"its log goes on: {bars[-1]}") if bars else Absent("no progress line was written meanwhile")


HYPOTHESIS = Hypothesis(
    id="HD302",
    name="slow-start-loading-weights",
    verdict="slow-start",
    suspects=signs.each_mover,
    essential=(
        signs.main_thread(
            lambda main: main.last.meaning.phase == "weight-load", "is loading weights", "is not loading weights"
        ),
        signs.main_thread(lambda main: not main.last.meaning.does("collective"), "loads itself", "waits for others"),
        _moves,
    ),
    supporting=(signs.does("works"), _bar_advances),
    confirm_at=1,
    excluding=(signs.nobody_died,),
    headline=lambda case: f"{signs.name_of(case.patient.process)} is loading weights, and it moves.",
    culprits=lambda case: (signs.culprit(case.patient, "is loading weights"),),
    action="Wait, and look at the disk: bytes to load divided by bytes per second is the time left.",
    playbook="slow-start-loading-weights",
)
