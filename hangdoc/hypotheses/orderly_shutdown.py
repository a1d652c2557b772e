"""HD510: the launch was shut down, and its processes ended in order."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._ending import orderly_end
from hangdoc.model.reading import Known


def _ended_in_order(case: Case) -> Outcome:
    """Everybody has left; the launcher with exit code 0 or asked to by a signal, and no rank failed before it."""
    return orderly_end(case.features)


def _log_announces_it(case: Case) -> Outcome:
    """Its log said that it shuts down."""
    log = case.features.log
    if isinstance(log, Known) and log.value.phase == "shutdown":
        return Present("its log said that it shuts down")
    return Absent("no log was read that says so")


def _log_names_a_failure(case: Case) -> Outcome:
    """The log names a failure: a server may leave with exit code 0 after one."""
    log = case.features.log
    if isinstance(log, Known) and log.value.crashes:
        return Present(f"its log says: {log.value.crashes[0].text}")
    return Absent("no failure was read in a log")


HYPOTHESIS = Hypothesis(
    id="HD510",
    name="orderly-shutdown",
    verdict="healthy",
    suspects=signs.the_launch,
    essential=(_ended_in_order,),
    supporting=(_ended_in_order, _log_announces_it),
    excluding=(_log_names_a_failure,),
    headline="The launch was shut down and ended in order.",
    action="Nothing to do.",
    playbook="orderly-shutdown",
)
