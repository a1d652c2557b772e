"""HD105: ranks spin on their GPUs in a collective, and one rank stands elsewhere and never comes.

Tested with a stand-in for NVML and by figures measured on one H200; not yet seen by hangdoc itself on a card.
"""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import activity
from hangdoc.hypotheses import _ranks as ranks
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._kernels import gpus_spin
from hangdoc.hypotheses._ras import counts_name_it, flight_recorder_names_it
from hangdoc.hypotheses._stops import STOPPED_STATES
from hangdoc.hypotheses.blocked_in_host_collective import stands_still, will_not_come_by_itself
from hangdoc.model.diagnosis import Culprit, Wait, WaitEnd
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known, Missing


def _others(case: Case) -> tuple[ProcessKey, ...]:
    found = ranks.compared(case)
    if isinstance(found, Unread):
        return ()
    return tuple(key for one in ranks.others_than(found, case.patient) for key in one.members)


def _others_wait_together(case: Case) -> Outcome:
    """All ranks that are not where it is stood in one place, for 9 s or more."""
    found = ranks.compared(case)
    if isinstance(found, Unread):
        return found
    others = ranks.others_than(found, case.patient)
    if not others:
        return Absent("all ranks stand in one place")
    if len(others) > 1:
        return Absent(f"the other ranks stand in {len(others)} places, not in one collective")
    outcome = ranks.all_stand(case.features, others[0].members)
    if not isinstance(outcome, Present):
        return outcome
    return Present(
        f"{ranks.names(case.features, others[0].members)} stood in one place: {ranks.place_of_class(others[0])}"
    )


def _their_gpus_spin(case: Case) -> Outcome:
    """The GPU of each of the others is busy in every sample, at a power near idle and a clock that is free."""
    return gpus_spin(case.features, _others(case)) if _others(case) else Unread("what the GPUs of the others do")


def _is_the_one_astray(case: Case) -> Outcome:
    """It stands elsewhere than the others wait; of two, NCCL counts it behind, or it alone sleeps."""
    found, name = ranks.compared(case), signs.name_of(case.patient.process)
    if isinstance(found, Unread):
        return found
    if found.odd:
        astray = any(case.patient.key in one.members for one in found.odd)
        sentence = "stands elsewhere than the others wait" if astray else "waits with the others"
        return Present(f"{name} {sentence}") if astray else Absent(f"{name} {sentence}")
    if isinstance(counted := counts_name_it(case), Present):
        return counted
    for key in _others(case):
        done = activity(case.features.members[key])
        if isinstance(done, Missing):
            return Unread.of(done, f"what pid {key.pid} does")
        if done != Known("spins"):
            return Unread("which of them is astray")
    return Present(f"{name} sleeps while the others burn CPU")


def is_asleep_or_in_another_collective(case: Case) -> Outcome:
    """It is stopped, or in another collective, or all its working threads wait for locks of its own or sleep for long.

    A rank that waits for a disk, a peer, a child or the end of a short sleep may only be slow.
    """
    main, motion = case.patient.main, case.patient.motion
    if not isinstance(motion, Missing) and all(state in STOPPED_STATES for state in motion.value.states):
        return Present(f"{signs.name_of(case.patient.process)} is stopped (state {motion.value.state})")
    if not isinstance(main, Missing) and main.value.always_does("collective"):
        return Present(f"{signs.name_of(case.patient.process)} waits in another collective: {signs.where(main.value)}")
    return will_not_come_by_itself(case)


def _same_place(case: Case) -> tuple[ProcessKey, ...]:
    found = ranks.compared(case)
    own = None if isinstance(found, Unread) else found.class_of(case.patient.key)
    return (case.patient.key,) if own is None else own.members


def _culprits(case: Case) -> tuple[Culprit, ...]:
    main = case.patient.main
    place = "an unknown place" if isinstance(main, Missing) else signs.where(main.value)
    reason = f"never came to the collective on the GPU; it stands in {place}"
    return ranks.culprits_of(case.features, _same_place(case), reason)


def _waits(case: Case) -> tuple[Wait, ...]:
    to = WaitEnd(pid=case.patient.key.pid, tid=case.patient.key.pid)
    return tuple(
        Wait(
            from_=WaitEnd(pid=key.pid, tid=key.pid),
            to=to,
            through="barrier",
            detail="its GPU spins for a rank that is not in the collective",
        )
        for key in _others(case)
    )


HYPOTHESIS = Hypothesis(
    id="HD105",
    name="rank-out-of-gpu-collective",
    verdict="busy-wait",
    suspects=signs.each_mover,
    essential=(
        _others_wait_together,
        _their_gpus_spin,
        _is_the_one_astray,
        stands_still,
        signs.positive_or_patience(is_asleep_or_in_another_collective),
        signs.nothing_moves_on_the_host,
        signs.readings_are_steady,
    ),
    supporting=(
        is_asleep_or_in_another_collective,
        _their_gpus_spin,
        counts_name_it,
        flight_recorder_names_it,
        signs.log_is_silent_too_long,
    ),
    confirm_at=2,
    excluding=(signs.nobody_died,),
    headline=lambda case: (
        f"{ranks.names(case.features, _others(case))} spins on the GPU for "
        f"{signs.name_of(case.patient.process)}, which never came to the collective."
    ),
    culprits=_culprits,
    waits=_waits,
    action="Look at the frames of the rank that stays out: what it waits for there is the cause.",
    playbook="rank-out-of-gpu-collective",
)
