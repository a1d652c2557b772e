"""What keeps a member as a whole from running: a signal, a tracer, a frozen control group."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Outcome, Present, Unread
from hangdoc.features.features import Member
from hangdoc.features.launch_waits import standing_links
from hangdoc.hypotheses._signs import name_of
from hangdoc.model.link import Link
from hangdoc.model.reading import Known, Missing

STOPPED_STATES = {"T": "stopped by a signal", "t": "stopped by a tracer"}
"""Letters of /proc/PID/stat, and what they mean."""


def no_rank_is_stopped(case: Case) -> Outcome:
    """Every rank can run: none is stopped by a signal or by a tracer."""
    for member in case.features.movers:
        if isinstance(member.motion, Missing):
            return Unread.of(member.motion, f"whether {name_of(member.process)} is stopped")
        if (state := member.motion.value.state) in STOPPED_STATES:
            return Absent(f"{name_of(member.process)} is {STOPPED_STATES[state]}")
    return Present("no rank is stopped")


def is_stopped(member: Member) -> bool:
    """Tell whether a signal, a tracer or a freezer held a member in every reading."""
    if isinstance(member.motion, Known) and all(state in STOPPED_STATES for state in member.motion.value.states):
        return True
    return freezer_of(member) is not None


def freezer_of(member: Member) -> Link | None:
    """Return what froze a member: the state of a frozen process is D or S, as if it waited."""
    links = standing_links(member)
    if isinstance(links, Missing):
        return None
    return next((link for link in links.value if link.through == "freezer"), None)
