"""Whether anybody waits for a suspect, which tells a lost rank from a program that computes."""

from __future__ import annotations

from hangdoc.criteria import Case, Outcome, Present, Unread
from hangdoc.features.activity import activity, waiting
from hangdoc.features.features import Member
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.engine import Activity
from hangdoc.model.reading import Known, Missing

LONG_LOOP_S = 8.0
"""Seconds over which the stacks of a program of no known engine have to lie in one function, while others wait for it,
before it counts as lost: steps of plain Python of a few seconds are common in such programs. Arbitrary."""

_IDLES: tuple[Activity, ...] = ("queue", "future", "helper", "idle-poll", "parent-wait", "event-loop")
"""What a main thread does that has no work, rather than waiting for another rank."""


def is_waited_for(case: Case) -> Outcome:
    """Somebody waits for it: always so in a server that is known, which does nothing long without saying so.

    Elsewhere a rank that waits meanwhile proves nothing: it waits for the end of a long computation as well, be it in
    Python or in native code that keeps the interpreter lock, and no reading tells that from a loop in vain.
    """
    if signs.is_server(case.features):
        return Present("the other processes of the server wait for it")
    dumps = case.patient.dumps
    if isinstance(dumps, Missing):
        return Unread.of(dumps, f"stacks of {signs.name_of(case.patient.process)}")
    if dumps.value.seconds < LONG_LOOP_S:
        return Unread(f"seen for {dumps.value.seconds:.0f} s only: a computation of that length is no hang")
    for member in case.features.movers:
        if member.key != case.patient.key and activity(member) == Known("spins"):
            return Unread(f"{signs.name_of(member.process)} burns CPU as well: ranks that share a computation do so")
    waiter = waiting_rank(case)
    if waiter is not None:
        name = signs.name_of(waiter.process)
        return Unread(f"whether it ends: {name} waits meanwhile, and a finite computation looks the same")
    return Unread("nobody is seen to wait for it: a computation looks the same")


def waiting_rank(case: Case) -> Member | None:
    """Return another rank that stands in a wait which is none of an idle one; None when none is seen to."""
    others = (member for member in case.features.movers if member.key != case.patient.key)
    return next((member for member in others if _waits_for_a_rank(member)), None)


def _waits_for_a_rank(member: Member) -> bool:
    done, wait = activity(member), waiting(member, member.key.pid)
    if not (isinstance(done, Known) and done.value == "still" and isinstance(member.main, Known)):
        return False
    if not isinstance(wait, Known) or wait.value is None or wait.value.call not in {"read", "futex", "poll"}:
        return False
    if wait.value.is_parked and not member.main.value.always_does("collective", "rendezvous"):
        return False  # a lock, a condition or a join of its own process: no other rank could end that
    return not any(view.meaning.does(*_IDLES) for view in member.main.value.views)
