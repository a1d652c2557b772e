"""Memory that moves on the GPU is work, and a GPU that cannot be seen is no sign of rest."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hangdoc.criteria import Absent, Case, Outcome, Present, Unread
from hangdoc.diagnosis import diagnose
from hangdoc.engines.generic import ENGINE
from hangdoc.features.features import features
from hangdoc.hypotheses._signs import nothing_progresses
from hangdoc.model.fd import OpenFiles
from hangdoc.model.gpu import Gpu, GpuProcess, Gpus
from hangdoc.model.reading import Known, Missing
from hangdoc.model.thread import ProcessIo, Progress
from tests.unit.features.synthetic import KEY, trace, whole

UNREAD = Missing("gpu", "unsupported")
STILL = Progress(Known(ProcessIo(0, 0, 0, 0, 0, 0)), 0, 0, 0, 0, 0)
OPENED = OpenFiles(complete=True, files=(), nvidia=("/dev/nvidia0",))


def gpus(used_bytes: int, util_ratio: float = 0.0) -> Gpus:
    device = Gpu(
        index=0,
        name="GPU",
        used_bytes=Known(used_bytes),
        total_bytes=UNREAD,
        util_ratio=Known(util_ratio),
        power_w=UNREAD,
        power_limit_w=UNREAD,
        processes=UNREAD,
    )
    return Gpus((device,))


def judged(first: Gpus | Missing, last: Gpus | Missing) -> Outcome:
    rounds = [{("progress", KEY): STILL, ("fds", KEY): OPENED, ("gpu", None): one} for one in (first, last)]
    recorded = trace(rounds)
    return nothing_progresses(Case(features(recorded, ENGINE, whole(recorded), steady=True), None))


@pytest.mark.parametrize(
    ("first", "last", "outcome"),
    [
        (gpus(1 << 30), gpus(3 << 30), Absent),
        (gpus(1 << 30), gpus(1 << 30), Present),
        (gpus(1 << 30), gpus(1 << 30, util_ratio=1.0), Unread),
        (Missing("gpu", "timeout"), Missing("gpu", "timeout"), Unread),
        (Gpus(()), Gpus(()), Unread),
    ],
)
def test_memory_of_the_gpu(first: Gpus | Missing, last: Gpus | Missing, outcome: type[Outcome]) -> None:
    """Growing memory is work; equal memory on an idle GPU is none; kernels, refusals and unseen GPUs leave it open."""
    assert isinstance(judged(first, last), outcome)


def test_what_the_driver_does_not_tell_is_listed() -> None:
    """A field of a GPU that is null in the document has its reason among the missing readings."""
    silent = Missing("gpu", "denied", "NVMLError_NoPermission: power", "run hangdoc as root (sudo)")
    (device,) = gpus(1 << 30).devices
    told = Gpus((replace(device, power_w=silent, processes=Known((GpuProcess(7, UNREAD),))),))
    found = diagnose(trace([{("progress", KEY): STILL, ("gpu", None): told}] * 2))
    assert found.gpus is not None
    assert found.gpus[0].power_w is None
    lacks = {(lack.probe, lack.pid, lack.reason, lack.detail) for lack in found.missing}
    assert {("gpu", None, "denied", silent.detail), ("gpu", None, "unsupported", "")} <= lacks
