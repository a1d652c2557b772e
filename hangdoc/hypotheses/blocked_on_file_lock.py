"""HD208: a rank waits for a file lock that a process holds, of the launch or outside it."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.features import Member
from hangdoc.features.launch_waits import standing_links, worker_tids
from hangdoc.features.links import likely_ends
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._chains import culprit_at, end_name, who_moves
from hangdoc.hypotheses._waits import worker_threads
from hangdoc.model.diagnosis import Culprit, Wait, WaitEnd
from hangdoc.model.link import Link, LinkEnd
from hangdoc.model.reading import Known, Missing, Reading


def _lock(member: Member) -> Reading[Link | None]:
    """Return the link of a working thread that waits for a file lock."""
    links = standing_links(member)
    if isinstance(links, Missing):
        return links
    working = worker_tids(member)
    held = [link for link in links.value if link.through == "file-lock" and link.tid in working]
    return Known(min(held, key=lambda link: (link.tid != member.key.pid, link.tid), default=None))


def _holders(case: Case) -> tuple[LinkEnd, ...]:
    lock = _lock(case.patient)
    return likely_ends(lock.value) if isinstance(lock, Known) and lock.value is not None else ()


def _waits_for_a_file_lock(case: Case) -> Outcome:
    """A working thread of it waits in flock or fcntl for a lock, and a living process holds that."""
    name = signs.name_of(case.patient.process)
    lock = _lock(case.patient)
    if isinstance(lock, Missing):
        return Unread.of(lock, f"which file lock {name} waits for")
    if lock.value is None:
        return _polls_for_a_lock_file(case)
    holders = _holders(case)
    if not holders:
        return Unread(f"who holds the lock that {name} waits for ({lock.value.detail})")
    whom = ", ".join(end_name(case.features, end) for end in holders)
    return Present(f"thread {lock.value.tid} of {name} waits for a {lock.value.detail}, which {whom} holds")


def _polls_for_a_lock_file(case: Case) -> Outcome:
    threads = worker_threads(case.patient)
    name = signs.name_of(case.patient.process)
    if isinstance(threads, Missing):
        return Unread.of(threads, f"whether {name} polls for a lock file")
    for thread in threads.value:
        if thread.always_does("file-lock"):
            return Unread(f"which lock file {name} asks for again and again: {signs.where(thread)}")
    return Absent(f"{name} waits for no file lock")


def _holder_stands_still(case: Case) -> Outcome:
    """Whoever holds the lock, and all its children, used no CPU between two readings some seconds apart.

    Fails for a holder that only waits for a slow disk or network: it may still be on its way.
    """
    holders = _holders(case)
    if not holders or isinstance(case.patient.links, Missing):
        return Unread("who holds the lock")
    before = _ticks(case.patient.links.value[0].links)
    for end in holders:
        earlier = before.get((end.process.pid, end.process.start_ticks))
        if earlier is None or end.tree_ticks is None:
            return Unread(f"whether {end_name(case.features, end)} is at work")
        if end.tree_ticks != earlier:
            return Unread(f"{end_name(case.features, end)} is at work: it may release the lock when it is done")
    return Present("whoever holds the lock used no CPU, and none of its children did")


def _ticks(links: tuple[Link, ...]) -> dict[tuple[int, int], int | None]:
    return {
        (end.process.pid, end.process.start_ticks): end.tree_ticks
        for link in links
        if link.through == "file-lock" and isinstance(link.ends, Known)
        for end in link.ends.value
    }


def _culprits(case: Case) -> tuple[Culprit, ...]:
    """Return who has to move: the holders, or whom they wait for themselves."""
    pids = [end.process.pid for end in _holders(case)]
    threads = who_moves(case.features, pids) or tuple((pid, pid) for pid in sorted(pids))
    what = f"holds up the file lock of {signs.name_of(case.patient.process)}"
    return tuple(culprit_at(case.features, thread, what) for thread in threads)


def _waits(case: Case) -> tuple[Wait, ...]:
    lock = _lock(case.patient)
    if isinstance(lock, Missing) or lock.value is None:
        return ()
    start = WaitEnd(pid=case.patient.key.pid, tid=lock.value.tid)
    return tuple(
        Wait(from_=start, to=WaitEnd(pid=end.process.pid, tid=None), through="file-lock", detail=lock.value.detail)
        for end in _holders(case)
    )


def _headline(case: Case) -> str:
    whom = ", ".join(end_name(case.features, end) for end in _holders(case)) or "somebody"
    return f"{signs.name_of(case.patient.process)} waits for a file lock that {whom} holds."


HYPOTHESIS = Hypothesis(
    id="HD208",
    name="blocked-on-file-lock",
    verdict="blocked",
    suspects=signs.each_mover,
    essential=(
        _waits_for_a_file_lock,
        signs.does("still"),
        signs.positive_or_patience(_holder_stands_still),
        signs.nothing_progresses,
        signs.readings_are_steady,
    ),
    supporting=(_waits_for_a_file_lock, _holder_stands_still),
    excluding=(signs.nobody_died,),
    headline=_headline,
    culprits=_culprits,
    waits=_waits,
    action="Look at the process that holds the lock: let it finish, or end it if an earlier launch left it.",
    playbook="blocked-on-file-lock",
)
