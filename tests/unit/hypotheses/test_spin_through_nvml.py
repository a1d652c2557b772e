"""A GPU that spins is told from one that works through NVML itself, in its place a stand-in that answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangdoc import discovery
from hangdoc.criteria import weigh
from hangdoc.features.features import Features, features
from hangdoc.hypotheses.gpu_kernel_spins import HYPOTHESIS
from hangdoc.model.fd import OpenFiles
from hangdoc.model.process import Process
from hangdoc.model.reading import Known
from hangdoc.model.snapshot import Payload
from hangdoc_probes import gpu
from tests.fake_nvml.stub import FakeNvml
from tests.unit.features.synthetic import (
    KEY,
    PARKED,
    Readings,
    clock,
    cpu,
    dump,
    links,
    progress,
    stack,
    trace,
    waits,
    whole,
)

ROUNDS = 12
RANK = (Process(key=KEY, ppid=1, role="scheduler", rank={"tp": 0}),)
STACK = stack("process_batch_result:7", "event_loop_overlap:9", file="sglang/srt/managers/scheduler.py")
SPINS = ("gpus 1", "gpu 0 util 100", "gpu 0 power 125000", "proc 0 100 1500", "use 0 100 99")


@pytest.fixture
def nvml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    monkeypatch.setattr(gpu, "ANSWER_S", 60.0)
    library = FakeNvml(tmp_path)
    library.install(monkeypatch)
    return library


def observed(nvml: FakeNvml, directory: Path, *rounds: tuple[str, ...]) -> Features:
    """A rank that stands in its loop while NVML answers so; the last answer stays."""
    (directory / "nvidia0").touch()
    session = gpu.GpuSession(directory)
    every: list[Readings] = []
    for number in range(ROUNDS):
        nvml.says(*rounds[min(number, len(rounds) - 1)])
        answer = session.read()
        assert isinstance(answer, Known)
        readings: dict[tuple[str, object], Payload] = {
            ("gpu", None): answer.value,
            ("progress", KEY): progress(),
            ("links", KEY): links(),
            ("cpu", KEY): cpu(clock()),
            ("futex", KEY): waits((100, PARKED)),
            ("fds", KEY): OpenFiles(complete=True, files=(), nvidia=("/dev/nvidia0",)),
            ("stacks", KEY): dump((100, 0)),
        }
        every.append(readings)  # type: ignore[arg-type]
    session.close()
    of = trace(every, processes=RANK, stacks=[STACK], engine="sglang")
    return features(of, discovery.engine("sglang"), whole(of), steady=True)


@pytest.mark.parametrize(
    ("said", "grade"),
    [
        ((SPINS,), "likely"),
        ((SPINS, SPINS, (*SPINS, "gpu 0 util 40"), SPINS), "ruled-out"),
        (((*SPINS, "gpu 0 power 343000"),), "ruled-out"),
        (((*SPINS, "gpu 0 util 0"),), "ruled-out"),
        (((*SPINS, "gpu 0 clock 345"),), "undetermined"),
        (((*SPINS, "proc 0 777 900", "use 0 777 99"),), "undetermined"),
        (((*SPINS, "proc 0 777 900"),), "likely"),
        (((*SPINS, "fail nvmlDeviceGetPowerUsage 3"),), "undetermined"),
        (((*SPINS, "fail nvmlDeviceGetComputeRunningProcesses_v3 4"),), "undetermined"),
        (((*SPINS, "fail nvmlDeviceGetClockInfo 3"),), "undetermined"),
    ],
    ids=[
        "it spins",
        "it paused once",
        "it copies",
        "it is idle",
        "its clock is held back",
        "a stranger runs kernels",
        "a stranger is idle",
        "no power",
        "no processes",
        "no clock",
    ],
)
def test_what_nvml_says_decides(nvml: FakeNvml, tmp_path: Path, said: tuple[tuple[str, ...], ...], grade: str) -> None:
    """Busy near idle power all the time, by nobody else's kernels, at a free clock: a spin. Anything less is none."""
    assert weigh(HYPOTHESIS, observed(nvml, tmp_path, *said)).grade == grade
