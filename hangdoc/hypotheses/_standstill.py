"""Whether processes could still go on by themselves: each thread of each, and of whoever they wait for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hangdoc.features.activity import waiting
from hangdoc.features.features import Features, Member
from hangdoc.features.launch_waits import joins_a_thread, standing_lock_edges, worker_tids
from hangdoc.features.waits import ENDED, leads_to, starts_at
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._chains import member_of
from hangdoc.hypotheses._plumbing import is_plumbing
from hangdoc.hypotheses._stops import is_stopped
from hangdoc.hypotheses._waits import ORDERS, TIMERS, handler_of, place
from hangdoc.hypotheses.blocked_in_host_collective import LONG_SLEEP_S
from hangdoc.model.link import Link
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known, Missing


def may_go_on(
    features: Features, start: Iterable[ProcessKey], standing: Iterable[ProcessKey] = (), *, by_order: bool = False
) -> str | None:
    """Return who may go on, of processes and of all they wait for, as a sentence; None when nobody ever will.

    Nobody will when every thread waits without a time limit for another of them, or is stopped or dead. standing: those
    that are known to stand. What was not read may go on. by_order: so may who rests until it is told to go on, by a
    signal that it handles, or in the wait of a library as one without work.
    """
    seen, left = set(standing), list(start)
    while left:
        key = left.pop()
        if key in seen:
            continue
        seen.add(key)
        member = features.members.get(key)
        if member is None:
            return f"pid {key.pid}, outside the launch, may go on"
        found = (_waits_for_orders(features, member) if by_order else None) or process_may_go_on(features, member)
        if isinstance(found, str):
            return found
        left += found
    return None


def _waits_for_orders(features: Features, member: Member) -> str | None:
    """Say that a process rests until it is told to go on: it may have nothing to do."""
    if signs.is_zombie(member) or is_stopped(member):
        return None
    name = signs.name_of(member.process)
    if (number := handler_of(member, ORDERS)) is not None and not signs.is_server(features):
        return f"a handler of {name} for signal {number} may go on"
    for tid in sorted(worker_tids(member)):
        sleep = waiting(member, tid)
        if isinstance(sleep, Known) and sleep.value is not None and sleep.value.call == "sleep":
            return f"{name} only sleeps ({place(member, tid)})"
    wait, main = waiting(member, member.key.pid), member.main
    if not isinstance(wait, Known) or wait.value is None or not wait.value.is_parked:
        return None
    if isinstance(main, Missing) or main.value.leaf is None or is_plumbing(main.value.leaf):
        return f"{name} may have nothing to do ({place(member, member.key.pid)})"
    return None


def process_may_go_on(features: Features, member: Member, but: int | None = None) -> str | tuple[ProcessKey, ...]:
    """Return which thread of a process may go on, as a sentence, or whom all its threads wait for. but: without it."""
    if signs.is_zombie(member) or is_stopped(member):
        return ()
    name = signs.name_of(member.process)
    clocks = member.clocks
    if isinstance(clocks, Missing):
        return f"whether {name} may go on was not to be read"
    if (number := handler_of(member, TIMERS)) is not None:
        return f"a handler of {name} for signal {number} may go on"
    behind: list[ProcessKey] = []
    for tid in sorted(set(clocks.value) - {but}):
        ends = _waits_for(features, member, tid) if clocks.value[tid].is_still else None
        if ends is None:
            return f"{name} may go on (thread {tid} in {place(member, tid)})"
        for key in ends:
            if key not in features.members:
                return f"{name} waits for pid {key.pid}, outside the launch"
        behind += ends
    return tuple(behind)


def _waits_for(features: Features, member: Member, tid: int) -> tuple[ProcessKey, ...] | None:
    """Return who could end a thread's wait, none when only its own process could; None when it may end otherwise."""
    wait = waiting(member, tid)
    if isinstance(wait, Missing) or wait.value is None:
        return None
    if wait.value.is_parked or joins_a_thread(member, tid) or (wait.value.sleep_left_s or 0.0) > LONG_SLEEP_S:
        return ()
    if wait.value.call == "futex":
        return tuple(_holders(features, member, tid)) or None
    if wait.value.call not in _FOR_SOMEBODY:
        return None
    ends = _ends(member, tid)
    if ends is None and wait.value.call == "wait-child":
        return tuple(key for key, other in features.members.items() if other.process.ppid == member.key.pid) or None
    return ends


_FOR_SOMEBODY = frozenset({"read", "write", "wait-child", "file-lock"})
"""System calls that have no time limit of their own and that somebody who can be found has to end."""


def _ends(member: Member, tid: int) -> tuple[ProcessKey, ...] | None:
    """Return who is at the other ends; None when that is not known.

    The newest reading will do: the thread did not run in between, so that its wait is the same one.
    """
    links = () if isinstance(member.links, Missing) else member.links.value[-1].links
    own = [link for link in links if link.tid == tid]
    if not own or any(isinstance(link.ends, Missing) or link.detail.startswith(_NAMED) for link in own):
        return None
    if any(_times_out(link) for link in own):
        return None
    return tuple(end.process for link in own if isinstance(link.ends, Known) for end in link.ends.value)


def _times_out(link: Link) -> bool:
    """Tell whether a socket may end the wait by itself; in an older trace, which does not tell, none is taken to."""
    limit_s = link.timeout_s
    return limit_s.reason != "not-taken" if isinstance(limit_s, Missing) else limit_s.value > 0


_NAMED = "FIFO"
"""How the detail of a link begins that leads through a FIFO with a name, which anybody may open."""


def _holders(features: Features, member: Member, tid: int) -> Iterator[ProcessKey]:
    for edge in standing_lock_edges(features):
        if starts_at(edge) == (member.key.pid, tid) and not edge.inferred:
            pid, holder = leads_to(edge)
            owner = member_of(features, pid)
            if owner is not None:
                yield owner.key if holder != ENDED else member.key
