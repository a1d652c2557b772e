"""A failure that the log names and from which the launch did not recover: shared by what may have caused it."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Outcome, Present, Sign, Unread
from hangdoc.features.activity import activity
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.reading import Missing


def log_names(event: str, what: str) -> Sign:
    """Return the sign that the log has a line of this name; what: the failure, for a sentence."""

    def sign(case: Case) -> Outcome:
        log = case.features.log
        if isinstance(log, Missing):
            return Unread.of(log, f"whether the log names {what}")
        found = [one for one in log.value.crashes if one.name == event]
        if not found:
            return Absent(f"its log does not name {what}")
        if any(one.phase == "ready" and one.offset > found[-1].offset for one in log.value.milestones):
            return Absent(f"its log names {what}, and that the server came up afterwards")
        return Present(f"its log says: {found[0].text}")

    sign.__doc__ = f"The log names {what}, and does not say that the server came up afterwards."
    return sign


def nothing_goes_on(case: Case) -> Outcome:
    """Not every rank goes round its event loop: a server that does has survived what its log names."""
    for member in case.features.movers:
        done, name = activity(member), signs.name_of(member.process)
        if signs.is_zombie(member):
            return Present(f"{name} is dead")
        if isinstance(member.main, Missing):
            return Unread.of(member.main, f"whether {name} goes on")
        if isinstance(done, Missing):
            return Unread.of(done, f"whether {name} goes on")
        if not member.main.value.always_does("event-loop", "idle-poll") or done.value == "still":
            return Present(f"{name} does not serve: {signs.where(member.main.value)}")
    if case.features.movers:
        return Absent("every rank goes on all the same")
    left = case.features.departed
    return Present("no rank is left") if left else Unread("whether a rank goes on: none was seen")
