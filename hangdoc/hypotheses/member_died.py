"""HD401: a member of the launch is dead, or raised and said so, and the others wait for it."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import activity, waiting
from hangdoc.features.features import Departure, Features, Member, is_tracker
from hangdoc.features.launch_waits import waits_in_shared_memory, woken_from_outside
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._ending import ended_well, orderly_end, said
from hangdoc.hypotheses._standstill import process_may_go_on
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.reading import Known, Missing


def _died_or_raised(case: Case) -> Outcome:
    """A vital member is a zombie, ended while it was watched, or the log names a failure of one."""
    dead = signs.the_dead(case.features)
    if dead:
        return Present(f"{', '.join(signs.name_of(process) for process in dead)} is dead")
    logged = _in_log(case)
    if isinstance(logged, Present):
        return _unless_it_goes_on(case, logged)
    alive = signs.nobody_died(case)
    return alive if isinstance(alive, Unread) else logged


def _unless_it_goes_on(case: Case, logged: Present) -> Outcome:
    """A failure that the log names was survived when every rank still goes round its event loop."""
    for member in case.features.movers:
        done = activity(member)
        if isinstance(member.main, Missing) or isinstance(done, Missing):
            return Unread(f"whether {signs.name_of(member.process)} goes on all the same ({logged.because})")
        if not member.main.value.always_does("event-loop", "idle-poll") or done.value == "still":
            return logged
    return Absent(f"{logged.because}, and every rank goes on all the same")


def _others_wait(case: Case) -> Outcome:
    """The launch cannot go on without the dead: by its engine's ranks, or because everybody else waits for a member.

    Where the engine is not known, members do their work and leave, and parents forget to reap them. So there nobody who
    is left may be able to go on: every thread of each stands in a wait for a child, or in a read of what only a member
    that stands as well, or the dead one, could send. A poll, a sleep, an accept, a lock, a time limit, a FIFO with a
    name or a sender outside the launch may be idle. A lock, semaphore or barrier that processes share counts as well
    once a member was killed or failed: idle workers wait so, too, but not beside one that broke. Not where a process
    outside the launch has that memory, or could open it: that one may come yet.
    """
    if signs.is_server(case.features):
        return Present("the launch cannot go on without each of its ranks")
    if case.features.has_ended:
        return Absent("nobody is left who could wait")
    if _all_failed_ranks(case.features):
        return Present("torchrun lets no rank go on without one that failed: it ends or starts all of them again")
    unread: Unread | None = None
    for member in case.features.members.values():
        if is_tracker(member.process) or signs.is_zombie(member):
            continue
        done = activity(member)
        if isinstance(done, Known) and done.value == "works":
            return Absent(f"{signs.name_of(member.process)} goes on: it {signs.describe(done.value)}")
        goes_on = _may_go_on(member, case) if done == Known("still") else None
        if done != Known("still") or goes_on is not None:
            why = f"{signs.name_of(member.process)} may go on" if goes_on is None else goes_on
            unread = Unread(f"{_unmissed(case)} ({why})")
    return unread or Present("everybody else waits, for a child or for data from a member")


def _all_failed_ranks(features: Features) -> bool:
    """Tell whether those who died first are ranks of torchrun's that failed; who has done its work is not missed."""
    first = _dead(features)
    return bool(first) and all(signs.is_rank(death.process, features) and _failed(death) for death in first)


def _unmissed(case: Case) -> str:
    dead = [signs.name_of(process) for process in signs.the_first_dead(case.features)]
    if not dead:
        return "whether anybody waits for the member that failed"
    return f"{', '.join(dead)} died, and nobody is seen to wait for {'it' if len(dead) == 1 else 'them'}"


def _may_go_on(member: Member, case: Case) -> str | None:
    """Say which thread of a member may go on without the dead one; None when it stands with it."""
    main = member.key.pid
    shares = any(_failed(death) for death in _dead(case.features)) and waits_in_shared_memory(member, main)
    wait = waiting(member, main)
    if isinstance(wait, Missing) or wait.value is None or not (shares or wait.value.call in {"read", "wait-child"}):
        return f"{signs.name_of(member.process)} may be idle"
    if shares and (other := woken_from_outside(member, main)) is not None:
        return f"{signs.name_of(member.process)} may be woken: {other}"
    found = process_may_go_on(case.features, member, but=main if shares else None)
    return found if isinstance(found, str) else None


def _in_log(case: Case) -> Outcome:
    log = case.features.log
    if isinstance(log, Missing):
        return Absent("no member died; its log was not read")
    crashes = [event for event in log.value.crashes if event.kind == "crash"]
    if crashes:
        return Present(f"its log says: {crashes[0].text}")
    return Absent("every member is alive and the log names no failure")


def _ended_in_order(case: Case) -> Outcome:
    """Excluding: the log says that the server was shutting down before anything ended, or everybody left in order.

    A launch without a log file announces nothing there; a log that could not be read may have announced it.
    """
    if case.features.has_ended and not isinstance(ended := orderly_end(case.features), Absent):
        return ended
    log = case.features.log
    if isinstance(log, Missing) and (log.reason == "unsupported" or not signs.is_server(case.features)):
        return Absent("no shutdown was announced that could be read")
    if isinstance(log, Missing):
        return Unread.of(log, "whether a shutdown was announced")
    if log.value.phase == "shutdown" and not log.value.crashes:
        return Present("the server was shutting down in order")
    return Absent("no shutdown was announced")


def _culprits(case: Case) -> tuple[Culprit, ...]:
    return tuple(signs.process_as_culprit(process, "is dead") for process in signs.the_first_dead(case.features))


def _headline(case: Case) -> str:
    dead = signs.the_dead(case.features)
    first = signs.the_first_dead(case.features)
    if dead:
        names = ", ".join(signs.name_of(process) for process in first)
        verb = "is" if len(first) == 1 else "are"
        return f"{names} {verb} dead; {_who_is_left(case.features, others_died=len(dead) > len(first))}."
    outcome = _in_log(case)
    return f"A member failed: {outcome.because}."


def _who_is_left(features: Features, *, others_died: bool) -> str:
    if features.has_ended:
        return "others died after it, and nobody is left" if others_died else "nobody is left of the launch"
    return "others died after it" if others_died else "the others still wait for it"


def _may_have_left(case: Case) -> Outcome:
    """Contrary: a member of a launch of no known engine may have done its work; its exit status says whether it did."""
    if signs.is_server(case.features):
        return Absent("its ranks never end before the launch does")
    first = _dead(case.features)
    failed = [death for death in first if _failed(death)]
    if failed:
        return Absent(_told(failed[0]))
    return Unread("whether the dead member failed or had done its work")


def _dead(features: Features) -> tuple[Departure, ...]:
    """Return the departures of those who died first."""
    first = {process.key for process in signs.the_first_dead(features)}
    return tuple(death for death in (*features.departed, *features.zombies) if death.process.key in first)


def _failed(death: Departure) -> bool:
    """Tell whether a member is known to have failed: by a signal that does not ask, or with an exit code."""
    return isinstance(death.how, Known) and not ended_well(death.how.value)


def _told(death: Departure) -> str:
    how = f": it {said(death.how.value)}" if isinstance(death.how, Known) else ""
    return f"{signs.name_of(death.process)} did not leave in order{how}"


def _is_dead(case: Case) -> Outcome:
    dead = signs.the_dead(case.features)
    return Present("seen dead, not only reported") if dead else Absent("every process is still there")


HYPOTHESIS = Hypothesis(
    id="HD401",
    name="member-died",
    verdict="crashed",
    suspects=signs.the_launch,
    essential=(_died_or_raised, _others_wait),
    supporting=(_is_dead,),
    confirm_at=1,
    contrary=(_may_have_left,),
    excluding=(_ended_in_order,),
    headline=_headline,
    culprits=_culprits,
    action="Read the first error of the dead member in the log; end what is left of the launch.",
    playbook="member-died",
)
