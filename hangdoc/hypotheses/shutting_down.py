"""HD504: the server was told to end, and does so in order."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import activity
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.reading import Missing


def _log_says_so(case: Case) -> Outcome:
    """The newest milestone of its log is that it shuts down, and the log names no failure."""
    log = case.features.log
    if isinstance(log, Missing):
        return Unread.of(log, "what its log says")
    if log.value.crashes:
        return Absent(f"its log says: {log.value.crashes[0].text}")
    if log.value.phase == "shutdown":
        return Present("its log says that it is shutting down")
    return Absent(f"its log stands at {log.value.phase}")


def _members_leave(case: Case) -> Outcome:
    """Members of the launch ended while it was watched."""
    gone = [signs.name_of(departure.process) for departure in case.features.departed]
    return Present(f"{', '.join(gone)} ended") if gone else Absent("nobody ended while it was watched")


def _it_goes_on(case: Case) -> Outcome:
    """A member ended, or one shows work: a shutdown that stands still may be a hang."""
    if isinstance(left := _members_leave(case), Present):
        return left
    unread: Unread | None = None
    for member in case.features.members.values():
        done = activity(member)
        if isinstance(done, Missing):
            unread = Unread.of(done, f"what {signs.name_of(member.process)} does")
        elif done.value == "works":
            return Present(f"{signs.name_of(member.process)} {signs.describe(done.value)}")
    return unread or Unread("whether the shutdown goes on: nobody ended, and nobody shows work")


HYPOTHESIS = Hypothesis(
    id="HD504",
    name="healthy-shutting-down",
    verdict="healthy",
    suspects=signs.the_launch,
    essential=(_log_says_so, _it_goes_on),
    supporting=(_log_says_so, _members_leave),
    headline="The server was told to end, and does so in order.",
    action="Nothing to do; look again in a minute whether all its processes are gone.",
    playbook="healthy-shutting-down",
)
