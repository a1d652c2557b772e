"""HD206: a member is stopped by a signal, a debugger or a frozen control group."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import waiting
from hangdoc.features.edges import Edge
from hangdoc.features.features import Features, Member, is_tracker
from hangdoc.features.frames import bare_name
from hangdoc.features.launch_waits import latest_edges, standing_graph, waits_in_shared_memory, woken_from_outside
from hangdoc.features.waits import starts_at
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._chains import member_of, thread_of
from hangdoc.hypotheses._stops import STOPPED_STATES, freezer_of
from hangdoc.hypotheses._waits import ORDERS, every_other_thread_is_parked, handler_of, timer_of_its_own
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.reading import Known, Missing
from hangdoc.model.stack import Stack
from hangdoc.procfs.syscalls import awaits


def _is_stopped(case: Case) -> Outcome:
    """Its main thread was in state T or t in every reading, or its control group is frozen."""
    motion = case.patient.motion
    name = signs.name_of(case.patient.process)
    if isinstance(motion, Missing):
        return Unread.of(motion, f"state of {name}")
    if all(state in STOPPED_STATES for state in motion.value.states):
        return Present(f"{name} is {STOPPED_STATES[motion.value.state]} (state {motion.value.state})")
    if (freezer := freezer_of(case.patient)) is not None:
        return Present(f"{name}: {freezer.detail}")
    return Absent(f"{name} is not stopped (state {motion.value.state})")


def _is_missed(case: Case) -> Outcome:
    """Somebody waits for it: always so in a server that is known; elsewhere a wait has to lead to it.

    A helper that nobody needs may be stopped without harm; what only may lead to it, as a descriptor in a set of many,
    leaves it open. A launch that is stopped as a whole waits for whoever stopped it.
    """
    features = case.features
    if signs.is_server(features):
        return Present("the other processes of the server wait for it")
    living = [member for member in features.members.values() if not is_tracker(member.process)]
    if all(isinstance(one.motion, Known) and one.motion.value.state in STOPPED_STATES for one in living):
        return Present("the whole launch is stopped")
    return _who_misses_it(case, living)


def _who_misses_it(case: Case, living: list[Member]) -> Outcome:
    features, name = case.features, signs.name_of(case.patient.process)
    for member in features.movers if signs.is_rank(case.patient.process, features) else ():
        if member.key != case.patient.key and _waits_for_all(member):
            return Present(f"{signs.name_of(member.process)} waits where every rank has to come")
    edges = [edge for edge in latest_edges(features) if edge.to_pid == case.patient.key.pid != edge.from_pid]
    if (waits := _waits_for_it(features, [edge for edge in edges if not edge.weak])) is not None:
        return waits
    if _lacks_in_a_barrier(case, living):
        return Present(f"all others but their parent are in one barrier, which {_ONE_MORE_THERE}")
    for member in living:
        if isinstance(member.links, Missing):
            return Unread.of(member.links, f"whom {signs.name_of(member.process)} waits for")
    what = "stopped" if freezer_of(case.patient) is None else "frozen"
    if (waiter := _waits_for_one_more(case)) is not None:
        accepts = f"{signs.name_of(waiter.process)}, for which others wait, waits for one more to connect"
        return Unread(f"whether {name}, which is {what}, is the one: {accepts}, and one may not be started yet")
    return Unread(f"whether anybody needs {name}, which is {what}: no wait leads to it for certain")


def _waits_for_it(features: Features, edges: list[Edge]) -> Present | Unread | None:
    """Return whose wait leads to it; one that a handler of the waiter's own may end leaves it open."""
    handler: str | None = None
    for edge in edges:
        waiter = member_of(features, edge.from_pid)
        own = None if waiter is None else timer_of_its_own(waiter, features)
        handler = handler or own
        if own is None:
            return Present(f"{thread_of(features, starts_at(edge))} waits for it ({edge.through})")
    return None if handler is None else Unread(handler)


def _lacks_in_a_barrier(case: Case, living: list[Member]) -> bool:
    """Tell whether all its siblings stand in one barrier of multiprocessing while their parent waits for an end.

    Why it works: nobody else could come to that barrier: no process outside the launch has its memory, and the parent
    starts nobody while it waits. Fails for a helper that is stopped beside ranks which all wait for one too many.
    """
    parent = case.patient.process.ppid
    siblings = [one for one in living if one.key != case.patient.key and one.key.pid != parent]
    above = next((one for one in living if one.key.pid == parent), None)
    if above is None or not siblings or any(one.process.ppid != parent for one in siblings):
        return False
    if handler_of(above, ORDERS) is not None:
        return False  # which may start another one
    edges = standing_graph(case.features).edges
    if not any(edge.from_pid == parent and edge.through == "child" and not edge.weak for edge in edges):
        return False
    barriers = {_barrier_of(one) for one in siblings}
    return len(barriers) == 1 and None not in barriers and _nobody_else_runs([above, *siblings])


def _nobody_else_runs(members: list[Member]) -> bool:
    return all(every_other_thread_is_parked(one, one.key.pid) == Known(True) for one in members)


def _barrier_of(member: Member) -> str | None:
    """Return the memory of the semaphore on which a member's main thread stands in a barrier, without a timeout."""
    tid = member.key.pid
    if not isinstance(member.main, Known) or not isinstance(member.locks, Known):
        return None
    if not waits_in_shared_memory(member, tid) or woken_from_outside(member, tid) is not None:
        return None
    if not all(_is_in_barrier(view.stack) for view in member.main.value.views):
        return None
    keys = {futex.shared_key for _, locks in member.locks.value for futex in locks.futexes if futex.tid == tid}
    return keys.pop() if len(keys) == 1 else None


def _is_in_barrier(stack: Stack) -> bool:
    """Tell whether a stack is in threading's Barrier, which multiprocessing's inherits: `_wait` is its alone."""
    names = {(bare_name(frame.function), frame.file.rsplit("/", 1)[-1]) for frame in stack}
    return ("_wait", "threading.py") in names and ("wait_for", "synchronize.py") in names


def _waits_for_one_more(case: Case) -> Member | None:
    """Return a rank that accepts connections while another rank, whose connection it has, waits for its word.

    Why it works: nobody else in it could answer, so that it will only when one more has come; a server without work
    keeps nobody waiting. It does not tell who has to come: one that was not started yet may be meant.
    """
    ranks = {one.key.pid: one for one in case.features.movers if one.key != case.patient.key}
    for edge in standing_graph(case.features).edges:
        member = ranks.get(edge.to_pid)
        if member is None or edge.weak or edge.from_pid not in ranks or edge.through not in {"socket", "tcp"}:
            continue
        if _accepts(member) and every_other_thread_is_parked(member, member.key.pid) == Known(True):
            return member
    return None


def _accepts(member: Member) -> bool:
    wait = waiting(member, member.key.pid)
    if not isinstance(wait, Known) or wait.value is None or not isinstance(member.waits, Known):
        return False
    return awaits(wait.value.system_call.number, member.waits.value[-1].machine) == "connection"


def _is_only_inferred(case: Case) -> Outcome:
    """Contrary: that somebody needs it is concluded from those that wait in a barrier for one more to come."""
    missed = _is_missed(case)
    if isinstance(missed, Unread):
        return missed
    if missed.because.endswith(_ONE_MORE_THERE):
        return Present("that it is the one to come is not proven")
    return Absent("a wait leads to it")


_ONE_MORE_THERE = "waits for one more to come"


def _waits_for_all(member: Member) -> bool:
    """Tell whether a rank stands in a collective or a rendezvous."""
    return isinstance(member.main, Known) and member.main.value.always_does("collective", "rendezvous")


def _culprits(case: Case) -> tuple[Culprit, ...]:
    what = (
        "is stopped and has to be continued" if freezer_of(case.patient) is None else "is frozen and has to be thawed"
    )
    return (signs.culprit(case.patient, what),)


def _headline(case: Case) -> str:
    what = "stopped" if freezer_of(case.patient) is None else "frozen"
    return f"{signs.name_of(case.patient.process)} is {what}; the others wait for it."


_CONTINUE = "Continue it with kill -CONT PID, after finding out who stopped it (Ctrl-Z, a debugger)"
_THAW = "its control group has to be thawed, which no signal does"


def _action(case: Case) -> str:
    freezer = freezer_of(case.patient)
    if freezer is None:
        return f"{_CONTINUE}."
    return f"Thaw it, after finding out who froze it: {freezer.detail}; kill -CONT does not thaw."


HYPOTHESIS = Hypothesis(
    id="HD206",
    name="stopped",
    verdict="blocked",
    suspects=lambda features: tuple(
        member
        for member in features.members.values()
        if member.process.role in signs.VITAL_ROLES or member in features.movers
    ),
    essential=(_is_stopped, _is_missed, signs.nothing_progresses, signs.readings_are_steady),
    supporting=(_is_stopped,),
    confirm_at=1,
    contrary=(_is_only_inferred,),
    excluding=(signs.nobody_died,),
    headline=_headline,
    culprits=_culprits,
    action=f"{_CONTINUE}; where it is frozen, {_THAW}.",
    action_in=_action,
    playbook="stopped",
)
