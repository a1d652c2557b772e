"""HD104: a kernel or a collective on the GPU never ends, and every rank waits for it at one line of Python.

Tested with a stand-in for NVML and by figures measured on one H200; not yet seen by hangdoc itself on a card.
"""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import SPIN_DEMAND_RATIO
from hangdoc.hypotheses import _ranks as ranks
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._kernels import its_gpu_spins
from hangdoc.hypotheses._waits import idle_is_known
from hangdoc.hypotheses.python_busy_loop import is_in
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.reading import Missing


def _waits_outside_python(case: Case) -> Outcome:
    """Its main thread does not run Python: it sleeps, or burns CPU without the interpreter lock.

    Measured: a host that waits for a kernel burns a core in cuEventSynchronize or, with a full launch queue, in
    cuLaunchKernel; the lock is free meanwhile.
    """
    member, name = case.patient, signs.name_of(case.patient.process)
    if isinstance(member.main, Missing):
        return Unread.of(member.main, f"stack of {name}")
    clocks = member.clocks
    if isinstance(clocks, Missing):
        return Unread.of(clocks, f"what {name} does")
    main = clocks.value.get(member.key.pid)
    if main is None:
        return Unread(f"what the main thread of {name} does")
    if main.demand_ratio < SPIN_DEMAND_RATIO:
        return Present(f"the main thread of {name} sleeps")
    holds = sum(view.owns_gil for view in member.main.value.views)
    if holds:
        return Absent(f"the main thread of {name} runs Python: it held the interpreter lock in {holds} stacks")
    below = signs.below_python(member)
    if member.burning_natives:
        below += f"; a thread without Python burns CPU too: {', '.join(member.burning_natives)}"
    return Present(f"the main thread of {name} burns CPU below Python, without the interpreter lock{below}")


def waits_for_requests(case: Case) -> Outcome:
    """Excluding: it is in its event loop and in no batch, so that it may wait for requests.

    Why: a rank that waits over the GPU for its first node, or for an earlier stage of a pipeline, keeps it at 100 %
    near idle power although all is well. Unread for an engine whose idle loops are not known, unless it is in a batch.
    """
    main, name = case.patient.main, signs.name_of(case.patient.process)
    if isinstance(main, Missing):
        return Unread.of(main, f"stack of {name}")
    if main.value.always_does("forward"):
        return Absent(f"{name} is in a batch")
    if main.value.ever_does("event-loop", "idle-poll"):
        return Present(f"{name} may wait for requests: {signs.where(main.value)}")
    if idle_is_known(case.features):
        return Absent(f"{name} is not in its event loop")
    return Unread(f"whether {name} has work: how this engine idles is not known")


def _group(case: Case) -> tuple[Culprit, ...]:
    found = ranks.compared(case)
    keys = (case.patient.key,) if isinstance(found, Unread) else ranks.keys_of(found)
    return ranks.culprits_of(case.features, keys, "its GPU spins: a kernel or a collective on it never ends")


def _headline(case: Case) -> str:
    main = case.patient.main
    place = "" if isinstance(main, Missing) else f" in {signs.where(main.value)}"
    others = len(_group(case)) - 1
    who = signs.name_of(case.patient.process) + (f" and {others} more ranks wait" if others else " waits")
    return f"{who}{place} for a kernel on the GPU that never ends: it is busy near idle power."


HYPOTHESIS = Hypothesis(
    id="HD104",
    name="gpu-kernel-spins",
    verdict="busy-wait",
    suspects=signs.each_mover,
    essential=(
        its_gpu_spins,
        ranks.stands_in_one_place,
        ranks.all_stand_together,
        _waits_outside_python,
        signs.nothing_moves_on_the_host,
        signs.readings_are_steady,
    ),
    supporting=(_waits_outside_python, signs.log_is_silent_too_long),
    excluding=(ranks.is_in_rendezvous, waits_for_requests, is_in("import", "compile"), signs.nobody_died),
    headline=_headline,
    culprits=_group,
    action="Restart with one thing less at a time: CUDA graphs, overlap, speculative decoding, custom all-reduce.",
    playbook="gpu-kernel-spins",
)
