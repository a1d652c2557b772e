"""HD404: the card of a rank failed: the driver gave an error while hangdoc watched, and nothing moves since.

Tested with a stand-in for NVML; not yet seen by hangdoc itself on a card.
"""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._kernels import gpus_of
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.reading import Known, Missing

FATAL = frozenset({31, 43, 48, 62, 74, 79, 94, 95, 109, 119, 120, 121, 154})
"""Xid errors after which what runs on the card does not go on: faults of memory, of NVLink, of the card's own
processor, and a card that is lost (NVIDIA's catalogue of Xid errors)."""


def _its_card_failed(case: Case) -> Outcome:
    """The driver gave an error of its card, after which nothing on the card goes on, while hangdoc watched."""
    name, gpus = signs.name_of(case.patient.process), gpus_of(case.features, case.patient)
    if isinstance(gpus, Missing):
        return Unread.of(gpus, f"whether the card of {name} failed")
    unread: Unread | None = None
    for gpu in gpus.value:
        health = gpu.now.health
        xids = health if isinstance(health, Missing) else health.value.xids
        if isinstance(xids, Missing):
            if xids.reason != "not-taken":  # a trace that is older than this reading says nothing of the card
                unread = Unread.of(xids, f"errors of GPU {gpu.now.index}")
            continue
        if fatal := [code for code in xids.value if code in FATAL]:
            return Present(f"the driver gave Xid {fatal[0]} for GPU {gpu.now.index}, which {name} uses")
    return unread or Absent(f"no card of {name} gave an error")


def _kernel_names_it(case: Case) -> Outcome:
    """Supporting: the kernel's log has such an error with its pid."""
    gpus, name = case.features.gpus, signs.name_of(case.patient.process)
    logged = gpus if isinstance(gpus, Missing) else gpus.value.kernel_xids
    lines = logged.value if isinstance(logged, Known) else ()
    fatal = [line.code for line in lines if line.pid == case.patient.key.pid and line.code in FATAL]
    if fatal:
        return Present(f"the kernel's log has Xid {fatal[-1]} of {name}")
    return Absent(f"the kernel's log, as far as it can be read, has no error of {name}")


def _culprits(case: Case) -> tuple[Culprit, ...]:
    return (signs.culprit(case.patient, "its card failed"),)


HYPOTHESIS = Hypothesis(
    id="HD404",
    name="gpu-failed",
    verdict="crashed",
    suspects=signs.each_mover,
    essential=(_its_card_failed, signs.nothing_moves_on_the_host, signs.readings_are_steady),
    supporting=(_kernel_names_it, signs.log_is_silent_too_long),
    confirm_at=1,
    excluding=(signs.nobody_died,),
    headline=lambda case: f"The card of {signs.name_of(case.patient.process)} failed, and nothing moves since.",
    culprits=_culprits,
    action="Read the kernel's log (dmesg, NVRM and Xid); end the launch, and reset or leave out the card.",
    playbook="gpu-failed",
)
