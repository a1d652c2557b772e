"""The gpu probe against a stand-in for NVML that answers, fails, hangs or is not there."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hangdoc.model.gpu import Gpu, GpuHealth, GpuProcess, Gpus, KernelXid
from hangdoc.model.reading import Known, Missing
from hangdoc.procfs.stat import parse_stat
from hangdoc.trace import wording
from hangdoc.trace.tokens import Tokens
from hangdoc_probes import gpu
from hangdoc_probes._kernel_log import KernelLog
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
    assert told == GpuProcess(4711, Known(1500 << 20), Known(0.47), told.is_here)
    assert isinstance(untold.used_bytes, Missing)
    assert untold.util_ratio == Known(0.0)
    assert (second.sm_clock_mhz, second.sm_clock_most_mhz) == (Known(345), Known(1980))


def health_of(device: Gpu) -> GpuHealth:
    assert isinstance(device.health, Known), device.health
    return device.health.value


def test_what_a_card_complains_of_is_read(nvml: FakeNvml, session: gpu.GpuSession) -> None:
    """Errors, rows, links, fabric, modes and what holds the clocks back come by card."""
    ill = ("ecc 3", "rows 2", "pending 1", "failure 1", "links 17", "fabric 2", "mig 1", "mode 3", "reasons 68")
    nvml.says(*TWO, *(f"gpu 1 {one}" for one in ill), "gpu 1 memory_clock 2619")
    first, second = found(session.read())
    assert health_of(first) == GpuHealth(
        ecc_errors=Known(0),
        remapped_rows=Known(0),
        remap_pending=Known(value=False),
        remap_failed=Known(value=False),
        nvlinks=Known((18, 18)),
        fabric=Known("completed"),
        mig=Known(value=False),
        compute_mode=Known("default"),
        xids=Known(()),
    )
    ill_one = health_of(second)
    assert (ill_one.ecc_errors, ill_one.remapped_rows, ill_one.nvlinks) == (Known(3), Known(2), Known((17, 18)))
    assert (ill_one.fabric, ill_one.compute_mode) == (Known("in-progress"), Known("exclusive-process"))
    assert all(one == Known(value=True) for one in (ill_one.remap_pending, ill_one.remap_failed, ill_one.mig))
    assert second.clock_reasons == Known(("power-cap", "hardware-hot"))
    assert second.memory_clock_mhz == Known(2619)


def test_cards_without_links_and_fabric(nvml: FakeNvml, session: gpu.GpuSession) -> None:
    """A card that has none of it says so, and that is no missing reading; a refusal is one."""
    nvml.says("gpus 1", "gpu 0 links -1", "fail nvmlDeviceGetGpuFabricInfoV 3", "fail nvmlDeviceGetTotalEccErrors 3")
    found_health = health_of(found(session.read())[0])
    assert (found_health.nvlinks, found_health.fabric) == (Known((0, 0)), Known("none"))
    assert isinstance(found_health.ecc_errors, Missing)
    assert found_health.ecc_errors.reason == "unsupported"


def test_errors_while_watched_are_kept(nvml: FakeNvml, session: gpu.GpuSession) -> None:
    """An Xid that the driver gives between two polls is told from then on, of its own card only."""
    assert [health_of(one).xids for one in found(session.read())] == [Known(()), Known(())]
    nvml.says(*TWO, "xid 1 79", "xid 1 154")
    for _ in range(2):
        assert [health_of(one).xids for one in found(session.read())] == [Known(()), Known((79, 154))]


def test_a_wait_for_errors_that_hangs_costs_the_errors_only(
    nvml: FakeNvml, session: gpu.GpuSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the wait for events does not return, the next program reads everything else."""
    found(session.read())
    nvml.says(*TWO, "hang nvmlEventSetWait_v2")
    patience_s = 1.0  # on a busy machine the program may not even come to the call that hangs
    while not session._options:
        monkeypatch.setattr(gpu, "ANSWER_S", patience_s)
        assert isinstance(session.read(), Missing)
        patience_s *= 2
    monkeypatch.setattr(gpu, "ANSWER_S", 60.0)
    first, _ = found(session.read())
    assert isinstance(health_of(first).xids, Missing)
    assert health_of(first).fabric == Known("completed")


def test_an_older_driver_knows_the_older_name(nvml: FakeNvml, session: gpu.GpuSession) -> None:
    """Where the reasons for the clocks have their older name only, they are read all the same."""
    nvml.says(*TWO, "gpu 0 reasons 4", "fail nvmlDeviceGetCurrentClocksEventReasons 13")
    assert found(session.read())[0].clock_reasons == Known(("power-cap",))


def test_the_kernels_log_is_read_for_errors(tmp_path: Path) -> None:
    """Errors of the driver are found in the log, and read on from there; other lines are none."""
    path = tmp_path / "kmsg"
    os.mkfifo(path)
    keep = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    log = KernelLog(str(path))
    os.write(keep, b"6,1,100,-;NVRM: loading\n")
    assert log.read() == Known(())
    os.write(keep, b"3,2,200,-;NVRM: Xid (PCI:0000:65:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off\n")
    assert log.read() == Known((KernelXid(79, 200_000),))
    log.close()
    os.close(keep)


def test_a_kernels_log_that_may_not_be_read(tmp_path: Path) -> None:
    """No right to read it, or none there, is a missing reading with a remedy."""
    reading = KernelLog(str(tmp_path / "none")).read()
    assert isinstance(reading, Missing)
    assert reading.remedy
    assert wording.sentence(Tokens(), f"{reading.detail} {reading.remedy}") == f"{reading.detail} {reading.remedy}"


def test_whether_a_pid_is_one_of_this_machines(nvml: FakeNvml, session: gpu.GpuSession) -> None:
    """A pid that /proc has, and one that no process can have here, are told apart."""
    nvml.says("gpus 1", f"proc 0 {os.getpid()} 1", "proc 0 4194305 1")
    processes = found(session.read())[0].processes
    assert isinstance(processes, Known)
    assert {one.pid: one.is_here for one in processes.value} == {
        os.getpid(): Known(value=True),
        4_194_305: Known(value=False),
    }


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
