"""HD106: all ranks of one node spin on the GPU right after NCCL was set up: its peer-to-peer traffic is broken.

Tested with a stand-in for NVML and by public reports; not yet seen by hangdoc itself on a card.
"""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.hypotheses import _ranks as ranks
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._kernels import every_gpu_spins, gpus_of
from hangdoc.model.log import LogEvent
from hangdoc.model.reading import Missing

LITTLE_BYTES = 2 << 30
"""Memory in use on a GPU up to which it holds contexts and communicators but no weights: reports say about 0.5 GB, an
H200 with two ranks on it showed 3.9 GB with the weights of a tiny model. Arbitrary between them."""


def nccl_lines(case: Case) -> list[LogEvent] | Unread:
    """Return the lines with which NCCL said that a rank's communicator is there, or why that is not known."""
    log = case.features.log
    if isinstance(log, Missing):
        return Unread.of(log, "what its log says last")
    return [event for event in log.value.milestones if event.name == "nccl-init-complete"]


def log_stops_at_nccl(case: Case) -> Outcome:
    """The log names NCCL's version, and neither the end of the rendezvous nor a communicator that is complete."""
    lines, log = nccl_lines(case), case.features.log
    if isinstance(lines, Unread) or isinstance(log, Missing):
        return lines if isinstance(lines, Unread) else Unread("what its log says last")
    if log.value.reached("rendezvous-end"):
        return Absent("its log names the end of the rendezvous")
    if lines:
        return Absent(f"its log goes on after NCCL's version: {lines[-1].text}")
    if log.value.reached("nccl-version"):
        return Present("its log stops at the version of NCCL")
    return Absent("its log does not name NCCL")


def _gpus_are_nearly_empty(case: Case) -> Outcome:
    """No GPU of it holds weights yet: at most 2 GiB are in use."""
    for member in case.features.movers:
        gpus = gpus_of(case.features, member)
        if isinstance(gpus, Missing):
            return Unread.of(gpus, f"memory on the GPU of {signs.name_of(member.process)}")
        for gpu in gpus.value:
            if isinstance(gpu.now.used_bytes, Missing):
                return Unread.of(gpu.now.used_bytes, f"memory on GPU {gpu.now.index}")
            if gpu.now.used_bytes.value > LITTLE_BYTES:
                return Absent(f"GPU {gpu.now.index} holds {gpu.now.used_bytes.value / 2**30:.1f} GiB")
    return Present("no GPU holds weights yet")


def in_the_rendezvous(case: Case) -> Outcome:
    """Its main thread is in the rendezvous in every stack."""
    return _in_the_rendezvous(case)


_in_the_rendezvous = signs.main_thread(
    lambda main: main.always_does("rendezvous"), "is in the rendezvous", "is not in the rendezvous"
)


HYPOTHESIS = Hypothesis(
    id="HD106",
    name="peer-to-peer-broken",
    verdict="busy-wait",
    suspects=signs.each_mover,
    essential=(
        ranks.several_ranks,
        ranks.one_node,
        log_stops_at_nccl,
        in_the_rendezvous,
        ranks.all_stand_together,
        every_gpu_spins,
        _gpus_are_nearly_empty,
        signs.nothing_moves_on_the_host,
        signs.readings_are_steady,
    ),
    supporting=(every_gpu_spins, signs.log_is_silent_too_long),
    excluding=(signs.nobody_died,),
    headline="All ranks spin in their first step on the GPUs after NCCL was set up: PCIe peer-to-peer seems broken.",
    action="Start once with NCCL_P2P_DISABLE=1: when that runs, mend peer-to-peer (ACS, IOMMU, driver) as told there.",
    playbook="peer-to-peer-broken",
)
