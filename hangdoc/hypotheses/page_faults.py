"""HD310: a rank reads its weights page by page from a mapped file on slow storage."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.reading import Missing

FEWEST_FAULTS_PER_S = 20.0
"""Major faults a second that show a load through a mapping: loaders that read() take none. Slow network disks gave
some ten a second, fast local ones thousands. Arbitrary between 0 and those."""

DISK_SHARE = 0.5
"""Share of readings in state D from which it mostly waits for a disk. Arbitrary."""


def _faults_come_from_disk(case: Case) -> Outcome:
    """Many of its page faults had to wait for a disk."""
    name, flow = signs.name_of(case.patient.process), case.patient.flow
    if isinstance(flow, Missing):
        return Unread.of(flow, f"page faults of {name}")
    rate = flow.value.major_faults / flow.value.seconds
    sentence = f"{rate:,.0f} page faults/s of {name} waited for a disk"
    return Present(sentence) if rate >= FEWEST_FAULTS_PER_S else Absent(sentence)


def _waits_for_disk(case: Case) -> Outcome:
    """Its main thread was in state D in half of the readings or more."""
    motion = case.patient.motion
    if isinstance(motion, Missing):
        return Unread.of(motion, f"states of {signs.name_of(case.patient.process)}")
    states = motion.value.states
    share = states.count("D") / len(states)
    sentence = f"it waited for a disk (state D) in {share:.0%} of the readings"
    return Present(sentence) if share >= DISK_SHARE else Absent(sentence)


HYPOTHESIS = Hypothesis(
    id="HD310",
    name="slow-start-page-faults",
    verdict="slow-start",
    suspects=signs.each_mover,
    essential=(
        signs.main_thread(
            lambda main: main.last.meaning.phase == "weight-load", "is loading weights", "is not loading weights"
        ),
        _faults_come_from_disk,
    ),
    supporting=(_faults_come_from_disk, _waits_for_disk, signs.does("works")),
    excluding=(signs.nobody_died,),
    headline=lambda case: (
        f"{signs.name_of(case.patient.process)} loads its weights page by page from a mapped file: slow, but it moves."
    ),
    culprits=lambda case: (signs.culprit(case.patient, "waits for pages of its weights"),),
    action="Wait, and next time read ahead: --weight-loader-disable-mmap, a prefetch of the files, or a local disk.",
    playbook="slow-start-page-faults",
)
