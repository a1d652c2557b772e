"""HD207: threads wait for each other in a circle."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import activity, waiting
from hangdoc.features.edges import Edge
from hangdoc.features.features import Member, is_tracker
from hangdoc.features.launch_waits import deadlocks, standing_graph, standing_links
from hangdoc.features.waits import Thread, circle_edges, leads_to, starts_at
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._waits import every_other_thread_is_parked, idle_is_known, place, worker_threads
from hangdoc.model.diagnosis import Culprit, Wait, WaitEnd
from hangdoc.model.reading import Missing


def _circle(case: Case) -> tuple[Edge, ...]:
    """Return the edges of the circle in which a thread of the suspect waits."""
    for circle in deadlocks(case.features):
        if any(pid == case.patient.key.pid for pid, _ in circle):
            return circle_edges(standing_graph(case.features), circle)
    return ()


def _members(case: Case) -> tuple[Member, ...]:
    pids = {starts_at(edge)[0] for edge in _circle(case)}
    return tuple(member for key, member in case.features.members.items() if key.pid in pids)


def _waits_in_a_circle(case: Case) -> Outcome:
    """Threads wait for each other in a circle, and did so in two readings some seconds apart."""
    edges = _circle(case)
    if edges:
        return Present(f"a circle of waits: {_told(case, edges)}")
    for member in case.features.members.values():
        if is_tracker(member.process) or signs.is_zombie(member):
            continue
        links = standing_links(member)
        if isinstance(links, Missing):
            return Unread.of(links, f"whom {signs.name_of(member.process)} waits for")
    return Absent("no threads wait for each other in a circle")


def _told(case: Case, edges: tuple[Edge, ...]) -> str:
    names = {key.pid: signs.name_of(member.process) for key, member in case.features.members.items()}
    return ", ".join(
        f"{names.get(edge.from_pid, edge.from_pid)} waits for {names.get(edge.to_pid, edge.to_pid)} ({edge.through})"
        for edge in edges
    )


def _stands_still(case: Case) -> Outcome:
    """Nobody in the circle executed one instruction."""
    members = _members(case)
    if not members:
        return Unread("who would be in a circle")
    for member in members:
        done = activity(member)
        if isinstance(done, Missing):
            return Unread.of(done, f"what {signs.name_of(member.process)} does")
        if done.value != "still":
            return Absent(f"{signs.name_of(member.process)} {signs.describe(done.value)}")
    return Present("nobody in the circle executed one instruction")


def _nobody_else_can_answer(case: Case) -> Outcome:
    """No other thread of these processes could answer instead.

    Rule: an edge that leads to a process, not to a thread of it, may be answered by any of its threads. So all others
    have to be parked: in an engine whose idle loops are known every Python thread that is no helper, elsewhere every
    thread. Fails for a main thread whose signal handlers answer.
    """
    edges = _circle(case)
    inside = {starts_at(edge) for edge in edges}
    for pid in sorted({edge.to_pid for edge in edges if edge.to_tid is None}):
        member = next(member for key, member in case.features.members.items() if key.pid == pid)
        unsure = _someone_else(case, member, inside)
        if unsure is not None:
            return unsure
    return Present("no other thread of them could answer instead") if edges else Unread("who could answer")


def _someone_else(case: Case, member: Member, inside: set[Thread]) -> Unread | None:
    name = signs.name_of(member.process)
    if not idle_is_known(case.features):
        parked = every_other_thread_is_parked(member, member.key.pid)
        if isinstance(parked, Missing):
            return Unread.of(parked, f"what every thread of {name} waits in")
        return None if parked.value else Unread(f"whether another thread of {name} might answer")
    threads = worker_threads(member)
    if isinstance(threads, Missing):
        return Unread.of(threads, f"the other threads of {name}")
    for thread in threads.value:
        if (member.key.pid, thread.tid) in inside:
            continue
        wait = waiting(member, thread.tid)
        if isinstance(wait, Missing) or wait.value is None or not wait.value.is_parked:
            return Unread(f"whether thread {thread.tid} of {name} might answer ({signs.where(thread)})")
    return None


def _culprits(case: Case) -> tuple[Culprit, ...]:
    edges = _circle(case)
    passive = standing_graph(case.features).passive
    return tuple(
        signs.culprit(member, f"waits in the circle in {place(member, member.key.pid)}", _tid(member, edges))
        for member in _members(case)
        if member.key.pid not in passive
    )


def _tid(member: Member, edges: tuple[Edge, ...]) -> int:
    return min(starts_at(edge)[1] for edge in edges if edge.from_pid == member.key.pid)


def _waits(case: Case) -> tuple[Wait, ...]:
    return tuple(
        Wait(
            from_=WaitEnd(pid=edge.from_pid, tid=edge.from_tid),
            to=WaitEnd(pid=edge.to_pid, tid=leads_to(edge)[1]),
            through=edge.through,
            detail=edge.detail,
        )
        for edge in _circle(case)
    )


HYPOTHESIS = Hypothesis(
    id="HD207",
    name="deadlock",
    verdict="blocked",
    suspects=lambda features: tuple(features.members.values()),
    essential=(
        _waits_in_a_circle,
        _stands_still,
        _nobody_else_can_answer,
        signs.nothing_progresses,
        signs.readings_are_steady,
    ),
    supporting=(_waits_in_a_circle, _nobody_else_can_answer),
    excluding=(signs.nobody_died,),
    headline=lambda case: f"Deadlock: {_told(case, _circle(case))}.",
    culprits=_culprits,
    waits=_waits,
    action="Compare the frames of the threads in the circle: one of them has to stop waiting first; end this launch.",
    playbook="deadlock",
)
