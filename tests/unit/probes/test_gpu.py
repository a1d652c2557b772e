"""The gpu probe against a stand-in for NVML that answers, fails, hangs or is not there."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hangdoc.model.gpu import Gpu, GpuProcess, Gpus
from hangdoc.model.reading import Known, Missing
from hangdoc.procfs.stat import parse_stat
from hangdoc_probes import gpu
from tests.fake_nvml.stub import FakeNvml
from tests.unit.probes.targets import round_of

TWO = (
    "gpus 2",
    "gpu 1 util 40",
    "gpu 1 power 350500",
    "gpu 1 mem_used 2000",
    "gpu 1 clock 345",
    "proc 1 4711 1500",
    "proc 1 4712 -1",
    "use 1 4711 12",
    "use 1 4711 47",
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> FakeNvml:
    return FakeNvml(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take long to start the program that asks."""
    monkeypatch.setattr(gpu, "ANSWER_S", 60.0)


@pytest.fixture
def nvml(library: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    library.install(monkeypatch)
    library.says(*TWO)
    return library


@pytest.fixture
def devices(tmp_path: Path) -> Path:
    """A /dev with the device files of one GPU."""
    for name in ("nvidia0", "nvidiactl"):
        (tmp_path / name).touch()
    return tmp_path


@pytest.fixture
def session(devices: Path) -> Iterator[gpu.GpuSession]:
    opened = gpu.GpuSession(devices)
    yield opened
    opened.close()


def found(reading: object) -> tuple[Gpu, ...]:
    assert isinstance(reading, Known), reading
    assert isinstance(reading.value, Gpus)
    return reading.value.devices


def test_every_field_is_read(nvml: FakeNvml, session: gpu.GpuSession) -> None:
    """Memory, use, power, clocks and who holds memory come in bytes, shares, watts and megahertz."""
    _, second = found(session.read())
    assert (second.index, second.used_bytes, second.util_ratio) == (1, Known(2000 << 20), Known(0.4))
    assert (second.power_w, second.power_limit_w) == (Known(350.5), Known(700.0))
    assert isinstance(second.processes, Known)
    told, untold = second.processes.value
    assert told == GpuProcess(4711, Known(1500 << 20), Known(0.47))
    assert isinstance(untold.used_bytes, Missing)
    assert untold.util_ratio == Known(0.0)
    assert (second.sm_clock_mhz, second.sm_clock_most_mhz) == (Known(345), Known(1980))


def test_a_gpu_on_which_nobody_ran_lists_no_use(nvml: FakeNvml, session: gpu.GpuSession) -> None:
    """A driver that finds no sample of any process says that none of them ran; one that refuses says nothing."""
    nvml.says("gpus 1", "proc 0 4711 1500")
    idle = found(session.read())[0].processes
    assert isinstance(idle, Known)
    assert idle.value[0].util_ratio == Known(0.0)
    nvml.says("gpus 1", "proc 0 4711 1500", "fail nvmlDeviceGetProcessUtilization 4")
    refused = found(session.read())[0].processes
    assert isinstance(refused, Known)
    assert isinstance(refused.value[0].util_ratio, Missing)


def test_a_call_that_fails_costs_its_own_field(nvml: FakeNvml, session: gpu.GpuSession) -> None:
    """A lost GPU's power is Missing with NVML's own name for the error; the rest is known."""
    nvml.says(*TWO, "fail nvmlDeviceGetPowerUsage 15")
    first, _ = found(session.read())
    assert isinstance(first.power_w, Missing)
    assert "NVMLError_GpuIsLost" in first.power_w.detail
    assert isinstance(first.used_bytes, Known)


def test_an_old_driver_without_the_second_memory_call_is_read(nvml: FakeNvml, session: gpu.GpuSession) -> None:
    """A driver that knows the first version of the memory call only still tells memory."""
    nvml.says(*TWO, "fail nvmlDeviceGetMemoryInfo_v2 13")
    assert found(session.read())[1].used_bytes == Known(2000 << 20)


def test_a_device_without_a_handle_is_listed(nvml: FakeNvml, session: gpu.GpuSession) -> None:
    """A device that cannot even be opened stays in the list, with the reason in each field."""
    nvml.says(*TWO, "fail nvmlDeviceGetHandleByIndex_v2 15")
    first, second = found(session.read())
    assert (first.name, second.name) == ("GPU 0", "GPU 1")
    assert isinstance(first.processes, Missing)


@pytest.mark.parametrize(("code", "reason"), [(4, "denied"), (10, "timeout"), (15, "failed"), (999, "failed")])
def test_a_failing_nvml_is_missing(nvml: FakeNvml, session: gpu.GpuSession, code: int, reason: str) -> None:
    """When NVML itself fails, the whole reading is Missing with a reason and a remedy."""
    nvml.says(f"fail nvmlInitWithFlags {code}")
    reading = session.read()
    assert isinstance(reading, Missing)
    assert reading.reason == reason
    assert reading.remedy


def test_a_failure_at_the_start_is_tried_again(nvml: FakeNvml, session: gpu.GpuSession) -> None:
    """A driver that comes up while hangdoc watches is read from then on."""
    nvml.says(*TWO, "fail nvmlInitWithFlags 9")
    assert isinstance(session.read(), Missing)
    nvml.says(*TWO)
    assert len(found(session.read())) == 2


def test_a_hanging_call_is_named_and_its_program_ended(
    nvml: FakeNvml, session: gpu.GpuSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call that never returns is Missing timeout with the function's name, and the next poll works."""
    found(session.read())
    monkeypatch.setattr(gpu, "ANSWER_S", 1.0)
    nvml.says(*TWO, "hang nvmlDeviceGetUtilizationRates")
    reading = session.read()
    assert isinstance(reading, Missing)
    assert reading.reason == "timeout"
    assert "nvmlDeviceGetUtilizationRates" in reading.detail
    assert not children()
    nvml.says(*TWO)
    monkeypatch.setattr(gpu, "ANSWER_S", 60.0)
    assert len(found(session.read())) == 2


def test_no_device_and_no_library_is_a_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host without GPUs answers with an empty list, and is not asked again."""
    monkeypatch.setenv("LD_LIBRARY_PATH", "")
    session = gpu.GpuSession(tmp_path)
    assert session.read() == Known(Gpus(()))
    assert not children()
    assert session.read() == Known(Gpus(()))
    session.close()


def test_devices_without_the_library_are_missing(session: gpu.GpuSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Device files but no NVML is Missing not-installed: there are GPUs, hangdoc cannot ask."""
    monkeypatch.setenv("LD_LIBRARY_PATH", "")
    reading = session.read()
    assert isinstance(reading, Missing)
    assert reading.reason == "not-installed"


def test_a_program_that_cannot_be_started_is_missing(
    tmp_path: Path, session: gpu.GpuSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interpreter that this user may not run is Missing denied with a remedy, and no fault of hangdoc."""
    interpreter = tmp_path / "python"
    interpreter.touch(0o600)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    reading = session.read()
    assert isinstance(reading, Missing)
    assert reading.reason == "denied"
    assert str(interpreter) in reading.detail
    assert reading.remedy


def test_programs_that_the_driver_holds_are_not_piled_up(session: gpu.GpuSession) -> None:
    """After two programs that could not be ended no third one is started."""
    session._held = gpu.MOST_HELD
    reading = session.read()
    assert isinstance(reading, Missing)
    assert reading.reason == "timeout"
    assert not children()


def test_interrupting_ends_a_poll(nvml: FakeNvml, session: gpu.GpuSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """When an observation is over, a poll that hangs ends at once."""
    monkeypatch.setattr(gpu, "ANSWER_S", 1000.0)
    nvml.says(*TWO, "hang nvmlDeviceGetName")
    taken: list[object] = []
    taking = threading.Thread(target=lambda: taken.extend(session.take(round_of())))
    taking.start()
    while not children():
        pass
    session.interrupt()
    taking.join()
    assert not children()


def children() -> list[int]:
    """Return this process's children that live."""
    own = os.getpid()
    listed = (Path(f"/proc/{own}/task/{tid.name}/children") for tid in Path("/proc/self/task").iterdir())
    pids = [int(pid) for file in listed if file.exists() for pid in file.read_text().split()]
    return [pid for pid in pids if parse_stat(Path(f"/proc/{pid}/stat").read_bytes()).state != "Z"]


def test_the_architecture_and_who_can_read_whom_are_told(nvml: FakeNvml, session: gpu.GpuSession) -> None:
    """Compute capability 12.0 comes as (12, 0), peers as the indices of the others; none where NVML says none."""
    nvml.says("gpus 3", *(f"gpu {index} major 12" for index in range(3)), "gpu 2 peers 0")
    devices = found(session.read())
    assert [device.compute_capability for device in devices] == [Known((12, 0))] * 3
    assert [device.peers for device in devices] == [Known((1, 2)), Known((0, 2)), Known(())]


def test_a_driver_that_does_not_tell_peers_is_a_missing_reading(nvml: FakeNvml, session: gpu.GpuSession) -> None:
    """Not supported is neither "no peer" nor a reason to lose the other readings."""
    nvml.says(*TWO, "fail nvmlDeviceGetP2PStatus 3")
    _, second = found(session.read())
    assert isinstance(second.peers, Missing)
    assert (second.peers.reason, second.compute_capability) == ("unsupported", Known((9, 0)))
