"""HD401: a member of the launch is dead, or raised and said so, and the others wait for it."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.reading import Missing


def _died_or_raised(case: Case) -> Outcome:
    """A vital member is a zombie, ended while it was watched, or the log names a failure of one."""
    dead = signs.the_dead(case.features)
    if dead:
        return Present(f"{', '.join(signs.name_of(process) for process in dead)} is dead")
    logged = _in_log(case)
    if isinstance(logged, Present):
        return logged
    alive = signs.nobody_died(case)
    return alive if isinstance(alive, Unread) else logged


def _in_log(case: Case) -> Outcome:
    log = case.features.log
    if isinstance(log, Missing):
        return Absent("no member died; its log was not read")
    crashes = [event for event in log.value.crashes if event.kind == "crash"]
    if crashes:
        return Present(f"its log says: {crashes[0].text}")
    return Absent("every member is alive and the log names no failure")


def _ended_in_order(case: Case) -> Outcome:
    """Excluding: the log says that the server was shutting down before anything ended."""
    log = case.features.log
    if isinstance(log, Missing):
        return Absent("no shutdown was announced that could be read")
    if log.value.phase == "shutdown" and not log.value.crashes:
        return Present("the server was shutting down in order")
    return Absent("no shutdown was announced")


def _culprits(case: Case) -> tuple[Culprit, ...]:
    return tuple(
        Culprit(
            pid=process.key.pid,
            start_ticks=process.key.start_ticks,
            tid=process.key.pid,
            role=process.role,
            rank=process.rank,
            reason="is dead",
        )
        for process in signs.the_dead(case.features)
    )


def _headline(case: Case) -> str:
    dead = signs.the_dead(case.features)
    if dead:
        return f"{', '.join(signs.name_of(process) for process in dead)} is dead; the others still wait for it."
    outcome = _in_log(case)
    return f"A member failed: {outcome.because}."


def _is_dead(case: Case) -> Outcome:
    dead = signs.the_dead(case.features)
    return Present("seen dead, not only reported") if dead else Absent("every process is still there")


HYPOTHESIS = Hypothesis(
    id="HD401",
    name="member-died",
    verdict="crashed",
    suspects=signs.the_launch,
    essential=(_died_or_raised,),
    supporting=(_is_dead,),
    confirm_at=1,
    excluding=(_ended_in_order,),
    headline=_headline,
    culprits=_culprits,
    action="Read the first error of the dead member in the log; end what is left of the launch.",
    playbook="member-died",
)
