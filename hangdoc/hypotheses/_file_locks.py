"""For which file lock a suspect waits, in the kernel or by asking again and again, and what its holders do."""

from __future__ import annotations

from dataclasses import dataclass

from hangdoc.criteria import Absent, Case, Outcome, Present, Unread
from hangdoc.features.features import Member
from hangdoc.features.launch_waits import standing_links, worker_tids
from hangdoc.features.links import likely_ends
from hangdoc.features.lock_files import Polled, used_ticks
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._chains import end_name
from hangdoc.hypotheses._stops import is_stopped
from hangdoc.hypotheses._waits import worker_threads
from hangdoc.model.link import Link, LinkEnd
from hangdoc.model.reading import Known, Missing, Reading

WORK_TICKS = 10
"""CPU time (0.1 s) that the holder of a lock and its children use between two readings some seconds apart when they
build or download; a waiting one was seen to use 0 or 1. Arbitrary between them."""

QUIET_S = 60.0
"""Seconds since the newest file beside a lock file from which nothing is being built: a build writes an object file now
and then, though one of them may take minutes. Arbitrary; it only supports."""


@dataclass(frozen=True)
class FileLockWait:
    """A thread's wait for a file lock. what: the lock, for a sentence; before: its holders as they were read before.

    polled: the lock file it asks for again and again; None for a wait in flock or fcntl.
    """

    tid: int
    what: str
    holders: Reading[tuple[LinkEnd, ...]]
    before: Reading[tuple[LinkEnd, ...]]
    polled: Polled | None = None

    @property
    def nobody_lives(self) -> bool:
        """Tell whether the lock is a mere file, and nobody has it open: it outlived whoever made it."""
        return self.polled is not None and self.polled.file.kind == "existence" and self.holders == Known(())


def file_lock(member: Member) -> Reading[FileLockWait | None]:
    """Return the file lock that a working thread waits for, one in the kernel first; None when none does."""
    if "file-lock" not in member.found:
        member.found["file-lock"] = _file_lock(member)
    found: Reading[FileLockWait | None] = member.found["file-lock"]
    return found


def _file_lock(member: Member) -> Reading[FileLockWait | None]:
    links, polled = standing_links(member), member.lock_files
    if isinstance(links, Known) and (link := _in_kernel(member, links.value)) is not None:
        return Known(link)
    if isinstance(polled, Known) and polled.value:
        return Known(_of_polled(min(polled.value, key=lambda one: (one.file.tid != member.key.pid, one.file.tid))))
    if isinstance(links, Missing):
        return links
    return _unless_it_polls(member)


def _in_kernel(member: Member, links: tuple[Link, ...]) -> FileLockWait | None:
    working = worker_tids(member)
    held = [link for link in links if link.through == "file-lock" and link.tid in working]
    link = min(held, key=lambda link: (link.tid != member.key.pid, link.tid), default=None)
    if link is None:
        return None
    ends = [
        end
        for other in (member.links.value[0].links if isinstance(member.links, Known) else ())
        if other.through == "file-lock" and isinstance(other.ends, Known)
        for end in other.ends.value
    ]
    holders = link.ends if isinstance(link.ends, Missing) else Known(likely_ends(link))
    return FileLockWait(link.tid, link.detail, holders, Known(tuple(ends)))


def _of_polled(polled: Polled) -> FileLockWait:
    file = polled.file
    return FileLockWait(file.tid, f"lock file {file.path}", file.holders, polled.before.holders, polled)


def _unless_it_polls(member: Member) -> Reading[FileLockWait | None]:
    """Return that it waits for none, unless its frames say that it polls for one that was not read."""
    threads = worker_threads(member)
    if isinstance(threads, Missing):
        return threads
    for thread in threads.value:
        if thread.always_does("file-lock"):
            lack = member.lock_files
            why = f": {lack.reason} {lack.detail}".rstrip() if isinstance(lack, Missing) else ""
            return Missing("lock-files", "not-taken", f"it asks again and again, in {signs.where(thread)}{why}")
    return Known(None)


def asks_for_a_file_lock(case: Case) -> Outcome:
    """A working thread of it waits in flock or fcntl, or asks for a lock file again and again."""
    name, wait = signs.name_of(case.patient.process), file_lock(case.patient)
    if isinstance(wait, Missing):
        return Unread.of(wait, f"which file lock {name} waits for")
    if wait.value is None:
        return Absent(f"{name} waits for no file lock")
    verb = "waits for a" if wait.value.polled is None else "asks again and again for the"
    return Present(f"thread {wait.value.tid} of {name} {verb} {wait.value.what}")


def holders_of(case: Case) -> tuple[LinkEnd, ...]:
    """Return who holds the lock; nobody when that is not known."""
    wait = file_lock(case.patient)
    if isinstance(wait, Missing) or wait.value is None or isinstance(wait.value.holders, Missing):
        return ()
    return wait.value.holders.value


def holder_names(case: Case) -> str:
    """Return all holders for a sentence."""
    return ", ".join(end_name(case.features, end) for end in holders_of(case)) or "somebody"


def stopped_holders(case: Case) -> tuple[Member, ...]:
    """Return the members among the holders that were stopped or frozen in every reading."""
    members = (case.features.members.get(end.process) for end in holders_of(case))
    return tuple(member for member in members if member is not None and is_stopped(member))


def held_by(case: Case) -> str:
    """Return "A holds" or "A, B hold" for a sentence, which of them are stopped included."""
    stopped = {member.key for member in stopped_holders(case)}
    names = [
        end_name(case.features, end) + (", which is stopped," if end.process in stopped else "")
        for end in holders_of(case)
    ]
    return f"{', '.join(names) or 'somebody'} {'holds' if len(names) < 2 else 'hold'}".replace(",,", ",")


def work_of_holders(case: Case) -> Reading[tuple[tuple[LinkEnd, int], ...]]:
    """Return the CPU time that every holder, with its children, used between two readings."""
    wait = file_lock(case.patient)
    if isinstance(wait, Missing) or wait.value is None or not holders_of(case):
        return Missing("lock-files", "not-taken", "who holds the lock is not known")
    used = [(end, used_ticks(end, wait.value.before)) for end in holders_of(case)]
    known = [(end, ticks) for end, ticks in used if ticks is not None]
    if len(known) < len(used):
        return Missing("lock-files", "not-taken", "what a holder does was read only once")
    return Known(tuple(known))


def looks_again_or_sleeps(case: Case) -> Outcome:
    """It stands still in the kernel, or only wakes to ask for the lock file again."""
    wait = file_lock(case.patient)
    polls = isinstance(wait, Known) and wait.value is not None and wait.value.polled is not None
    return signs.does("still", "stirs")(case) if polls else signs.does("still")(case)
