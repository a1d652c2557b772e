"""What keeps a member as a whole from running: a signal, a tracer, a frozen control group."""

from __future__ import annotations

from hangdoc.features.features import Member
from hangdoc.features.launch_waits import standing_links
from hangdoc.model.link import Link
from hangdoc.model.reading import Known, Missing

STOPPED_STATES = {"T": "stopped by a signal", "t": "stopped by a tracer"}
"""Letters of /proc/PID/stat, and what they mean."""


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
