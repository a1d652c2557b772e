"""HD303: a rank waits for a compiler that runs, or compiles itself."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import SPIN_DEMAND_RATIO, activity
from hangdoc.features.features import Member
from hangdoc.features.launch_waits import deadlocks, unread_waits
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.process import Process
from hangdoc.model.reading import Known, Missing

BUSY_COMPILERS_RATIO = SPIN_DEMAND_RATIO / 2
"""Cores that the compilers of the launch use together: one that runs uses nearly one, one that only waits none."""


def compilers_run(case: Case) -> Outcome:
    """Compiler processes of the launch use CPU, or compilers ended meanwhile."""
    demands = [_demand(member) for member in case.features.compilers]
    used = sum(demand for demand in demands if demand is not None)
    ended = [gone for gone in case.features.departed if gone.process.role == "compiler"]
    if used >= BUSY_COMPILERS_RATIO or ended:
        return Present(f"its compilers use {used:.1f} cores" + (f", and {len(ended)} ended" if ended else ""))
    if None in demands:
        return Unread("how much CPU its compilers use")
    return _compiles_itself(case)


def _compiles_itself(case: Case) -> Outcome:
    done = activity(case.patient)
    if isinstance(done, Missing):
        return Unread.of(done, f"what {signs.name_of(case.patient.process)} does")
    if done.value == "works":
        return Present(f"{signs.name_of(case.patient.process)} {signs.describe(done.value)}")
    return Absent("no compiler runs and the rank itself does not work")


def _asks_for_a_compile(case: Case) -> Outcome:
    """Its stack is inside a build, or it waits while a compiler that it started runs."""
    main = case.patient.main
    name = signs.name_of(case.patient.process)
    if isinstance(main, Missing):
        return Unread.of(main, f"stack of {name}")
    if main.value.last.meaning.does("compile"):
        return Present(f"{name} is inside a build: {signs.where(main.value)}")
    done = activity(case.patient)
    if isinstance(done, Known) and done.value != "spins" and _own_compilers_run(case):
        return Present(f"{name} waits while a compiler that it started runs")
    return Absent(f"{name} is not inside a build")


def _own_compilers_run(case: Case) -> bool:
    return any(
        demand >= BUSY_COMPILERS_RATIO
        for member in case.features.members.values()
        if member.process.role == "compiler" and _is_below(member.process, case)
        if (demand := _demand(member)) is not None
    )


def _is_below(process: Process, case: Case) -> bool:
    """Tell whether the suspect started a process, or what started it: a build tool starts a driver, that a compiler."""
    parents = {member.key.pid: member.process.ppid for member in case.features.members.values()}
    above, passed = process.ppid, {process.key.pid}
    while above != case.patient.key.pid and above in parents and above not in passed:
        passed.add(above)
        above = parents[above]
    return above == case.patient.key.pid


def _others_deadlock(case: Case) -> Outcome:
    """Threads of a launch of no known engine wait for each other in a circle, which no compiler that ends will free.

    In a server that is known, whatever it compiles is waited for.
    """
    if signs.is_server(case.features):
        return Absent("whoever compiles in this server is waited for")
    if deadlocks(case.features):
        return Present("threads of the launch wait for each other in a circle meanwhile")
    for member in case.features.movers:
        if (unread := unread_waits(member)) is not None:
            return Unread.of(unread, f"whom {signs.name_of(member.process)} waits for")
    return Absent("no threads wait for each other in a circle")


def _demand(member: Member) -> float | None:
    if isinstance(member.motion, Missing) or isinstance(member.motion.value.demand_ratio, Missing):
        return None
    return member.motion.value.demand_ratio.value


def _compiles(case: Case) -> str:
    if signs.is_server(case.features):
        return "waits for kernels to be compiled, and compilers run"
    inside = isinstance(case.patient.main, Known) and case.patient.main.value.last.meaning.does("compile")
    return "is inside a build, and that gets on" if inside else "waits while a compiler that it started runs"


def _action(case: Case) -> str:
    return HYPOTHESIS.action if signs.is_server(case.features) else "Wait until the compilers are done."


HYPOTHESIS = Hypothesis(
    id="HD303",
    name="slow-start-compiling",
    verdict="slow-start",
    suspects=signs.each_mover,
    essential=(_asks_for_a_compile, compilers_run),
    supporting=(compilers_run,),
    confirm_at=1,
    excluding=(_others_deadlock, signs.nobody_died),
    headline=lambda case: f"{signs.name_of(case.patient.process)} {_compiles(case)}.",
    culprits=lambda case: (signs.culprit(case.patient, "is compiling"),),
    action="Wait (10 to 20 min with a cold cache is usual), and keep the cache directory between starts.",
    action_in=_action,
    playbook="slow-start-compiling",
)
