"""HD102: a rank burns CPU in native code or in system calls that return at once, and gets nowhere."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import SPIN_DEMAND_RATIO
from hangdoc.features.motion import ThreadMotion
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._http import requests_stand
from hangdoc.hypotheses.python_busy_loop import cannot_be_a_poll, is_in, polls_for_requests
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.reading import Known, Missing, Reading

SYSTEM_RATIO = 0.5
"""Share of CPU time in the kernel that shows a loop of system calls, when nothing is read or written: a sched_yield
loop measured 0.75, sleep(0) 0.6, pure computation 0."""

SWITCHES_PER_S = 5000.0
"""Voluntary context switches that show a loop of waits that return at once: sleep(0) measured 10,800 a second at
28 % of a core; a process starved of the interpreter lock makes about 200 a thread."""


def _restless(case: Case) -> Reading[ThreadMotion | None]:
    threads = case.patient.clocks
    if isinstance(threads, Missing):
        return threads
    main = threads.value.get(case.patient.key.pid)
    if main is None:
        return Known(None)
    switches = main.voluntary_per_s.value if isinstance(main.voluntary_per_s, Known) else 0.0
    return Known(main if main.demand_ratio >= SPIN_DEMAND_RATIO or switches >= SWITCHES_PER_S else None)


def _burns(case: Case) -> Outcome:
    """Its main thread burns CPU, or waits in vain thousands of times a second."""
    thread = _restless(case)
    if isinstance(thread, Missing):
        return Unread.of(thread, f"threads of {signs.name_of(case.patient.process)}")
    if thread.value is None:
        return Absent(f"the main thread of {signs.name_of(case.patient.process)} does not burn CPU")
    return Present(
        f"the main thread of {signs.name_of(case.patient.process)} burns CPU: demand {thread.value.demand_ratio:.2f}"
        f"{signs.below_python(case.patient)}"
    )


def _loops_over_system_calls(case: Case) -> Outcome:
    """What it does in the kernel shows a loop; plain native computation looks like a native spin, so it is unread."""
    thread = _restless(case)
    if isinstance(thread, Missing) or thread.value is None:
        return Unread("how the CPU is burnt")
    switches, system = thread.value.voluntary_per_s, thread.value.system_ratio
    if isinstance(switches, Known) and switches.value >= SWITCHES_PER_S:
        return Present(f"it waits and returns {switches.value:,.0f} times a second")
    if isinstance(system, Known) and system.value >= SYSTEM_RATIO:
        return Present(f"{system.value:.0%} of its CPU time goes into system calls that move no data")
    return Unread("native computation, a long call and a native spin look the same from outside")


def _is_no_poll(case: Case) -> Outcome:
    """It cannot be an idle server that asks for requests again and again."""
    thread = _restless(case)
    if isinstance(thread, Missing) or thread.value is None:
        return Unread("whether it polls for requests")
    return cannot_be_a_poll(thread.value, case)


def _does_not_run_python(case: Case) -> Outcome:
    """Contrary: its stack moves between Python lines, so Python code runs."""
    main = case.patient.main
    if isinstance(main, Missing):
        return Unread.of(main, f"stack of {signs.name_of(case.patient.process)}")
    if len({view.stack for view in main.value.views}) > 1:
        return Present(f"its Python stack moves: last in {signs.where(main.value)}")
    return Absent(f"its Python stack stands at {signs.where(main.value)}")


def _culprits(case: Case) -> tuple[Culprit, ...]:
    return (signs.culprit(case.patient, "burns CPU in native code or in system calls that return at once"),)


HYPOTHESIS = Hypothesis(
    id="HD102",
    name="native-busy-loop",
    verdict="busy-wait",
    suspects=signs.each_mover,
    essential=(
        _burns,
        signs.nothing_progresses,
        signs.positive_or_patience(_loops_over_system_calls),
        _is_no_poll,
        signs.readings_are_steady,
    ),
    supporting=(_loops_over_system_calls, signs.log_is_silent_too_long, requests_stand),
    contrary=(_does_not_run_python,),
    excluding=(polls_for_requests, is_in("import", "compile"), signs.nobody_died),
    headline=lambda case: f"{signs.name_of(case.patient.process)} spins outside Python and gets nowhere.",
    culprits=_culprits,
    action="Take one native stack (hangdoc watch PID --once --native: stops it for a moment); see the playbook.",
    playbook="native-busy-loop",
)
