"""HD421: the launch ran out of GPU memory that processes of an earlier launch still hold."""

from __future__ import annotations

from dataclasses import dataclass

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._log_failures import log_names, nothing_goes_on
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.reading import Known, Missing, Reading

FEWEST_BYTES = 1 << 30
"""GPU memory of one process that matters: a context alone takes 0.3 to 0.6 GB. Arbitrary above that."""


@dataclass(frozen=True)
class Hoard:
    """A process outside the launch that holds memory of a GPU. orphan: an engine's, whose launcher is gone."""

    pid: int
    gpu: int
    used_bytes: int
    orphan: bool


def _hoards(case: Case) -> Reading[tuple[Hoard, ...]]:
    """Return who outside the launch holds memory on a GPU, the largest first; processes NVML does not name are left."""
    gpus = case.features.gpus
    if isinstance(gpus, Missing):
        return gpus
    orphans = _orphans(case)
    members = {key.pid for key in case.features.members}
    found = []
    for gpu in gpus.value.devices:
        if isinstance(gpu.processes, Missing):
            return gpu.processes
        for one in gpu.processes.value:
            if one.pid in members or isinstance(one.used_bytes, Missing) or one.used_bytes.value < FEWEST_BYTES:
                continue
            found.append(Hoard(one.pid, gpu.index, one.used_bytes.value, one.pid in orphans))
    return Known(tuple(sorted(found, key=lambda hoard: (-hoard.used_bytes, hoard.pid))))


def _orphans(case: Case) -> frozenset[int]:
    around = case.features.surroundings
    if isinstance(around, Missing) or isinstance(around.value.orphans, Missing):
        return frozenset()
    return frozenset(end.process.pid for end in around.value.orphans.value)


def _others_hold_memory(case: Case) -> Outcome:
    """A process outside the launch holds a gigabyte or more of a GPU's memory.

    Fails in a container where NVML tells pids of the host: then members themselves look like strangers.
    """
    hoards = _hoards(case)
    if isinstance(hoards, Missing):
        return Unread.of(hoards, "who holds memory on the GPUs")
    if not hoards.value:
        return Absent("nobody outside the launch holds memory on its GPUs")
    return Present(_told(hoards.value[0]))


def _told(hoard: Hoard) -> str:
    kind = "a leftover of an earlier launch" if hoard.orphan else "outside the launch"
    return f"pid {hoard.pid}, {kind}, holds {hoard.used_bytes / 2**30:,.1f} GiB of GPU {hoard.gpu}"


def _it_is_a_leftover(case: Case) -> Outcome:
    """That process is an engine's whose launcher is gone."""
    around, hoards = case.features.surroundings, _hoards(case)
    if isinstance(around, Missing):
        return Unread.of(around, "which engine processes were left behind")
    if isinstance(around.value.orphans, Missing):
        return Unread.of(around.value.orphans, "which engine processes were left behind")
    left = [hoard for hoard in (() if isinstance(hoards, Missing) else hoards.value) if hoard.orphan]
    return Present(_told(left[0])) if left else Absent("none of them is an engine's process without a launcher")


def _culprits(case: Case) -> tuple[Culprit, ...]:
    hoards = _hoards(case)
    if isinstance(hoards, Missing):
        return ()
    return tuple(
        Culprit(pid=one.pid, start_ticks=None, tid=None, role="other", rank={}, outside=True, reason=_told(one))
        for one in hoards.value
    )


def _headline(case: Case) -> str:
    hoards = _hoards(case)
    who = _told(hoards.value[0]) if not isinstance(hoards, Missing) and hoards.value else "somebody holds it"
    return f"The launch ran out of GPU memory: {who}."


HYPOTHESIS = Hypothesis(
    id="HD421",
    name="memory-held-by-leftovers",
    verdict="crashed",
    suspects=signs.the_launch,
    essential=(log_names("out-of-memory", "a lack of GPU memory"), _others_hold_memory, nothing_goes_on),
    supporting=(_others_hold_memory, _it_is_a_leftover),
    headline=_headline,
    culprits=_culprits,
    action="End the leftover (hangdoc kill-clean without a PID offers those of yours), then start again.",
    playbook="memory-held-by-leftovers",
)
