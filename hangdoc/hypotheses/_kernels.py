"""What the kernels of a rank do on its GPU: shared by the hypotheses of GPUs that spin."""

from __future__ import annotations

from collections.abc import Iterable

from hangdoc.criteria import Absent, Case, Outcome, Present, Unread
from hangdoc.features.features import Features, Member
from hangdoc.features.gpu import GpuHistory, KernelUse
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known, Missing, Reading

WORST: tuple[KernelUse, ...] = ("works", "held-back", "spins", "idle")
"""Of several GPUs the first of these that one of them shows is what the rank does."""


def gpus_of(features: Features, member: Member) -> Reading[tuple[GpuHistory, ...]]:
    """Return the GPUs on which the driver lists a member; empty for one that has no GPU open.

    Where the driver lists it on none although it has one open (in a container pids may be another namespace's), and
    there is one GPU only, it is on that one; otherwise Missing.
    """
    if isinstance(member.has_gpu, Missing):
        return member.has_gpu
    if not member.has_gpu.value:
        return Known(())
    if isinstance(features.gpu_histories, Missing) or _pids_are_hidden(features):
        return features.gpu_histories
    unread = next((gpu.now.processes for gpu in features.gpu_histories.value if _is_missing(gpu)), None)
    if isinstance(unread, Missing):
        return unread
    found = tuple(gpu for gpu in features.gpu_histories.value if gpu.user(member.key.pid) is not None)
    if not found:
        return Missing("gpu", "unsupported", "the driver lists its pid on no GPU that is visible here")
    return Known(found)


def _is_missing(gpu: GpuHistory) -> bool:
    return isinstance(gpu.now.processes, Missing)


def _pids_are_hidden(features: Features) -> bool:
    """Tell whether the processes on the one GPU here are the members that have it open, under other pids.

    Rule: one GPU is visible, the driver lists on it as many processes as members have a GPU open, and no process of
    these numbers is here. Why: older drivers give the host's pids in a container. Fails where a member has it open
    without using it, and a stranger in another container uses it.
    """
    if isinstance(features.gpu_histories, Missing) or len(features.gpu_histories.value) != 1:
        return False
    listed = features.gpu_histories.value[0].now.processes
    opened = [member.has_gpu for member in features.members.values()]
    if isinstance(listed, Missing) or any(isinstance(one, Missing) for one in opened):
        return False
    elsewhere = all(one.is_here == Known(value=False) for one in listed.value)
    return elsewhere and len(listed.value) == opened.count(Known(value=True))


def kernel_use(features: Features, member: Member) -> Reading[tuple[KernelUse, str]]:
    """Return what a member's kernels did in the window, with its sentence."""
    gpus = gpus_of(features, member)
    if isinstance(gpus, Missing):
        return gpus
    uses: dict[KernelUse, str] = {}
    for gpu in gpus.value:
        use = gpu.use
        if isinstance(use, Missing):
            return use
        if use.value != "idle" and (stranger := _stranger(features, gpu)) is not None:
            return stranger
        hidden = " (its pids are not visible from here: by its open devices)" if _pids_are_hidden(features) else ""
        uses.setdefault(use.value, gpu.sentence() + hidden)
    worst = next((use for use in WORST if use in uses), None)
    return Known(("idle", "it has no GPU open") if worst is None else (worst, uses[worst]))


def _stranger(features: Features, gpu: GpuHistory) -> Missing | None:
    """Return why it is not known whose kernels run: somebody outside the launch is on the GPU and may run them."""
    members = {key.pid for key in features.members}
    if _pids_are_hidden(features):
        return None
    processes = () if isinstance(gpu.now.processes, Missing) else gpu.now.processes.value
    for one in processes:
        if one.pid not in members and one.util_ratio != Known(0.0):
            detail = f"process {one.pid} outside the launch is on GPU {gpu.now.index} as well: whose kernels run"
            return Missing("gpu", "unsupported", detail)
    return None


def gpu_spins(features: Features, member: Member) -> Outcome:
    """Tell whether a member's GPU was busy in every sample at a power near idle, although its clock is free."""
    use, name = kernel_use(features, member), signs.name_of(member.process)
    if isinstance(use, Missing):
        return Unread.of(use, f"what the kernels of {name} do")
    kind, sentence = use.value
    if kind == "spins":
        return Present(f"{sentence} all the time, near idle power: kernels of {name} run and get nowhere")
    if kind == "held-back":
        return Unread(f"{sentence}, and its clock is held back: real work would draw as little")
    return Absent(f"{sentence}: no kernel of {name} spins")


def its_gpu_spins(case: Case) -> Outcome:
    """Its GPU is busy in every sample of the window, at a power near idle and a clock that is free.

    Tiny real kernels look the same, so that this alone never shows a hang.
    """
    return gpu_spins(case.features, case.patient)


def gpus_spin(features: Features, keys: Iterable[ProcessKey]) -> Outcome:
    """Tell whether the GPU of each of these spins."""
    outcomes = [gpu_spins(features, features.members[key]) for key in keys]
    for kind in (Absent, Unread):
        if (other := next((one for one in outcomes if isinstance(one, kind)), None)) is not None:
            return other
    return Present("; ".join(dict.fromkeys(one.because for one in outcomes))) if outcomes else Absent("there is none")


def every_gpu_spins(case: Case) -> Outcome:
    """The GPU of every rank is busy in every sample, at a power near idle and a clock that is free."""
    return gpus_spin(case.features, (member.key for member in case.features.movers))
