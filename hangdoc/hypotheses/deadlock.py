"""HD207: threads wait for each other in a circle."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import activity, waiting
from hangdoc.features.edges import Edge
from hangdoc.features.features import Member, is_tracker
from hangdoc.features.launch_waits import deadlocks, standing_graph, standing_links, unread_locks
from hangdoc.features.waits import Thread, circle_edges, leads_to, reach, starts_at
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._chains import culprit_at, end_name, inferred_among, member_of, thread_of
from hangdoc.hypotheses._waits import TIMERS, every_other_thread_is_parked, handler_of, idle_is_known, worker_threads
from hangdoc.model.diagnosis import Culprit, Wait, WaitEnd
from hangdoc.model.reading import Known, Missing


def _circle(case: Case) -> tuple[Edge, ...]:
    """Return the edges of the circle in which a thread of the suspect waits: of several, one with every sign."""
    graph = standing_graph(case.features)
    circles = [
        circle_edges(graph, circle)
        for circle in deadlocks(case.features)
        if any(pid == case.patient.key.pid for pid, _ in circle)
    ]
    signs_of = (_still_within, _others_within)
    whole = (edges for edges in circles if all(isinstance(sign(case, edges), Present) for sign in signs_of))
    return next(whole, circles[0] if circles else ())


def _waits_in_a_circle(case: Case) -> Outcome:
    """Threads wait for each other in a circle, and did so in two readings some seconds apart."""
    edges = _circle(case)
    if edges:
        return Present(f"a circle of waits: {_told(case, edges)}")
    for member in case.features.members.values():
        if is_tracker(member.process) or signs.is_zombie(member):
            continue
        links = standing_links(member)
        unread = links if isinstance(links, Missing) else unread_locks(member)
        if unread is not None:
            return Unread.of(unread, f"whom {signs.name_of(member.process)} waits for")
    return Absent("no threads wait for each other in a circle")


def _told(case: Case, edges: tuple[Edge, ...]) -> str:
    features = case.features
    return ", ".join(
        f"{thread_of(features, starts_at(edge))} waits for {thread_of(features, leads_to(edge))} ({edge.through})"
        for edge in edges
    )


def _stands_still(case: Case) -> Outcome:
    """Nobody in the circle executed one instruction, except to ask for the interpreter lock again.

    Of a process that is waited for as a whole no working thread ran; of one that is waited for by its threads' locks
    only those threads count, because nobody else can release them.
    """
    return _still_within(case, _circle(case))


def _still_within(case: Case, edges: tuple[Edge, ...]) -> Outcome:
    if not edges:
        return Unread("who would be in a circle")
    as_a_whole = {edge.to_pid for edge in edges if edge.to_tid is None}
    for edge in edges:
        member = member_of(case.features, edge.from_pid)
        if member is None:
            return Unread(f"what pid {edge.from_pid} does")
        moved = _member_moved(member) if edge.from_pid in as_a_whole else _thread_moved(member, edge)
        if moved is not None:
            return moved
    return Present("nobody in the circle executed one instruction")


def _member_moved(member: Member) -> Absent | Unread | None:
    done = activity(member)
    if isinstance(done, Missing):
        return Unread.of(done, f"what {signs.name_of(member.process)} does")
    return None if done.value == "still" else Absent(f"{signs.name_of(member.process)} {signs.describe(done.value)}")


def _thread_moved(member: Member, edge: Edge) -> Absent | Unread | None:
    """Look whether a thread ran; who waits for the interpreter lock wakes every 5 ms to ask for it again."""
    tid = starts_at(edge)[1]
    name = f"thread {tid} of {signs.name_of(member.process)}"
    clocks = member.clocks
    if isinstance(clocks, Missing):
        return Unread.of(clocks, f"what {name} does")
    if tid not in clocks.value:
        return Unread(f"what {name} does")
    return None if edge.through == "gil" or clocks.value[tid].is_still else Absent(f"{name} ran")


def _a_holder_is_inferred(case: Case) -> Outcome:
    """Contrary: that somebody in the circle holds the lock that is waited for is likely, and not proven."""
    edges = _circle(case)
    inferred = inferred_among(edges)
    if inferred is not None:
        return Present(inferred)
    return Absent("every wait in the circle is recorded") if edges else Absent("no lock is in a circle")


def _nobody_else_can_answer(case: Case) -> Outcome:
    """No other thread of these processes could answer instead.

    Rule: an edge that leads to a process, not to a thread of it, may be answered by any of its threads. So all others
    have to be parked: in an engine whose idle loops are known every Python thread that is no helper, elsewhere every
    thread. Fails for a main thread whose signal handlers answer.
    """
    return _others_within(case, _circle(case))


def _others_within(case: Case, edges: tuple[Edge, ...]) -> Outcome:
    inside = {starts_at(edge) for edge in edges}
    unsure = _who_else_has_the_end(case, edges) or _who_has_a_handler(case, edges)
    if unsure is not None:
        return unsure
    for pid in sorted({edge.to_pid for edge in edges if edge.to_tid is None}):
        member = member_of(case.features, pid)
        unsure = None if member is None else _someone_else(case, member, inside)
        if unsure is not None:
            return unsure
    return Present("no other thread of them could answer instead") if edges else Unread("who could answer")


def _who_else_has_the_end(case: Case, edges: tuple[Edge, ...]) -> Unread | None:
    """Look for a process outside the circle that could end a wait in it, if only because a fork gave it the end."""
    inside = {edge.from_pid for edge in edges}
    for edge in edges:
        member = member_of(case.features, edge.from_pid)
        links = member.links.value[-1].links if member is not None and isinstance(member.links, Known) else ()
        for link in links:
            if (link.tid, link.through) != (edge.from_tid, edge.through) or isinstance(link.ends, Missing):
                continue
            for end in link.ends.value:
                if end.process.pid not in inside and not _waits_for_the_circle(case, end.process.pid, edges):
                    return Unread(f"whether {end_name(case.features, end)}, which has that end too, might answer")
    return None


def _who_has_a_handler(case: Case, edges: tuple[Edge, ...]) -> Unread | None:
    """Look for a program of an unknown engine whose own signal handler may end its wait, as an alarm(2) does."""
    for pid in () if idle_is_known(case.features) else sorted({edge.from_pid for edge in edges}):
        member = member_of(case.features, pid)
        number = None if member is None else handler_of(member, TIMERS)
        if member is not None and number is not None:
            return Unread(f"whether a handler of {signs.name_of(member.process)} for signal {number} ends its wait")
    return None


def _may_time_out(case: Case) -> Outcome:
    """Contrary: a wait in the circle is on a socket, whose own timeout (SO_RCVTIMEO) was not read."""
    for edge in _circle(case):
        member = member_of(case.features, edge.from_pid)
        links = member.links.value[-1].links if member is not None and isinstance(member.links, Known) else ()
        own = [one.timeout_s for one in links if (one.tid, one.through) == (edge.from_tid, edge.through)]
        if edge.through in {"socket", "tcp"} and not (own and all(one == Known(0.0) for one in own)):
            return Unread(f"whether the socket itself ends the wait after a time: {edge.detail}")
    return Absent("no wait in the circle ends by itself")


def _waits_for_the_circle(case: Case, pid: int, edges: tuple[Edge, ...]) -> bool:
    """Tell whether a member cannot answer either before somebody in the circle moves."""
    member, main = member_of(case.features, pid), (pid, pid)
    circle = {starts_at(edge) for edge in edges}
    if member is None or circle.isdisjoint(reach(standing_graph(case.features).strong, main)):
        return False
    return _someone_else(case, member, circle | {main}) is None


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


def _gets_nowhere(case: Case) -> Outcome:
    """Nothing progresses, or whoever works meanwhile works for nobody who waits for the circle.

    A circle of locks within one process never ends by itself; that another rank stands waiting for that process shows
    that the launch misses it, whatever a helper beside them computes.
    """
    progress = signs.nothing_progresses(case)
    return progress if isinstance(progress, Present) else _missed(case) or progress


def _is_a_state(case: Case) -> Outcome:
    """The last slices are all of one kind; or they change by what somebody does for nobody who waits for the circle."""
    steady = signs.readings_are_steady(case)
    return steady if isinstance(steady, Present) else _missed(case) or steady


def _missed(case: Case) -> Present | Unread | None:
    """Look for a rank that waits for a circle of locks, in a process of which nobody else can end them."""
    edges = _circle(case)
    if not edges or any(edge.through not in _LOCKS for edge in edges):
        return None
    inside, movers = {edge.from_pid for edge in edges}, {member.key.pid for member in case.features.movers}
    for edge in standing_graph(case.features).edges:
        if not edge.weak and edge.to_pid in inside and edge.from_pid in movers - inside:
            return Present(f"{thread_of(case.features, starts_at(edge))} waits for the circle, whatever else goes on")
    for member in case.features.movers:
        links = standing_links(member)
        if member.key.pid not in inside and isinstance(links, Missing):
            return Unread.of(links, f"whether {signs.name_of(member.process)} waits for the circle")
    return None


_LOCKS = frozenset({"futex", "python-lock"})
"""Waits that only threads of the same process can end."""


def _culprits(case: Case) -> tuple[Culprit, ...]:
    """Return who has to move: of a circle in which somebody waits for an end, that one; otherwise everybody in it.

    Why: whoever waits for a word of it cannot end before; it could give that word instead of waiting. Not so in a
    server that is known, whose launcher waits by design.
    """
    edges = _circle(case)
    joining = sorted({starts_at(edge) for edge in edges if edge.through == "child"})
    if joining and len(joining) < len(edges) and not signs.is_server(case.features):
        return tuple(culprit_at(case.features, thread, "waits for an end that waits for it") for thread in joining)
    passive = standing_graph(case.features).passive
    threads = sorted({starts_at(edge) for edge in _circle(case)})
    # A launcher is named only when nobody else is in the circle: then its own threads are.
    named = [thread for thread in threads if thread[0] not in passive] or threads
    return tuple(culprit_at(case.features, thread, "waits in the circle") for thread in named)


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
        _gets_nowhere,
        _is_a_state,
    ),
    supporting=(_waits_in_a_circle, _stands_still, _nobody_else_can_answer),
    contrary=(_a_holder_is_inferred, _may_time_out),
    excluding=(signs.nobody_died,),
    headline=lambda case: f"Deadlock: {_told(case, _circle(case))}.",
    culprits=_culprits,
    waits=_waits,
    action="Compare the frames of the threads in the circle: one of them has to stop waiting first; end this launch.",
    playbook="deadlock",
)
