"""GPU memory before and after, against a stand-in for NVML: late, never, held by somebody, not to be read."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from hangdoc.ending.memory import compare
from hangdoc.ending.records import Before, GpuHolder, GpuMemory, GpuReading
from hangdoc.launch.pidfd import hold
from hangdoc.model.process import ProcessKey
from tests.conftest import NOT_TO_BE_HAD
from tests.fake_nvml.stub import FakeNvml
from tests.unit.cli.commands import LONGEST_S, argv
from tests.unit.ending.theatre import Theatre, lives

FAST = ("--yes", "--no-snapshot", "--json")
USED, IDLE = 40_500, 500
"""MiB on the GPU with and without the launch."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> FakeNvml:
    return FakeNvml(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def nvml(library: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    library.install(monkeypatch)
    return library


def in_use(*pids: int) -> tuple[str, ...]:
    each = (USED - IDLE) // len(pids)
    return ("gpus 2", "gpu 1 mem_used 700", f"gpu 0 mem_used {USED}", *(f"proc 0 {pid} {each}" for pid in pids))


def idle(used: int = IDLE, *more: str) -> tuple[str, ...]:
    return ("gpus 2", "gpu 1 mem_used 700", f"gpu 0 mem_used {used}", *more)


class Driver:
    """Changes what NVML says as soon as a process has ended, as a driver does."""

    def __init__(self, nvml: FakeNvml, key: ProcessKey, *steps: tuple[str, ...]) -> None:
        self._nvml, self._steps = nvml, steps
        self._handle = hold(key)
        self._thread = threading.Thread(target=self._drive)
        self._thread.start()

    def _drive(self) -> None:
        assert self._handle is not None
        select.select([self._handle.descriptor], [], [])
        for number, step in enumerate(self._steps):
            if number:
                select.select([], [], [], 0.7)
            self._nvml.says(*step)
        self._handle.close()

    def wait(self) -> None:
        self._thread.join(LONGEST_S)


def gpus(out: str) -> tuple[dict[str, Any], dict[str, Any]]:
    document = json.loads(out)
    after = document["launches"][0]["after"]
    return after, after["gpus"][0] if after["gpus"] else {}


@pytest.mark.parametrize("delays", [1, 3])
def test_memory_that_comes_back_is_waited_for(theatre: Theatre, nvml: FakeNvml, delays: int) -> None:
    """At once or late: the proof waits for it, only on the device the launch used, and says how much was used."""
    cast = theatre.launch("plain", "rank0", "rank1")
    ranks = (cast["rank0"].pid, cast["rank1"].pid)
    nvml.says(*in_use(*ranks))
    still = idle(USED)
    driver = Driver(nvml, cast["rank1"], *([still] * (delays - 1)), idle())
    ended = theatre.kill_clean(str(ranks[0]), *FAST)
    driver.wait()
    after, gpu = gpus(ended.out)
    assert ended.code == 0, ended.out
    assert [one["index"] for one in after["gpus"]] == [0]
    assert (gpu["before_bytes"], gpu["after_bytes"], gpu["returned"]) == (USED << 20, IDLE << 20, True)
    assert after["memory_returned"] is True


def test_memory_that_never_comes_back(theatre: Theatre, nvml: FakeNvml) -> None:
    """After --gpu-timeout it is said how much is missing and that no visible process has it: exit 1."""
    cast = theatre.launch("plain", "rank0", "rank1")
    nvml.says(*in_use(cast["rank0"].pid))
    driver = Driver(nvml, cast["rank0"], idle(USED))
    ended = theatre.kill_clean(str(cast["rank0"].pid), *FAST, "--gpu-timeout", "1")
    driver.wait()
    _, gpu = gpus(ended.out)
    assert ended.code == 1
    assert gpu["returned"] is False
    assert gpu["says"] == "39.1 GiB did not come back; no visible process has it"


def test_memory_that_somebody_outside_the_namespace_has(theatre: Theatre, nvml: FakeNvml) -> None:
    """A holder whose pid is not visible here is told as such: exit 1."""
    cast = theatre.launch("plain", "rank0", "rank1")
    nvml.says(*in_use(cast["rank0"].pid))
    driver = Driver(nvml, cast["rank0"], idle(USED, "proc 0 4194303 40000"))
    ended = theatre.kill_clean(str(cast["rank0"].pid), *FAST, "--gpu-timeout", "1")
    driver.wait()
    _, gpu = gpus(ended.out)
    assert "pid 4194303 (not visible here: outside this container?)" in gpu["says"]
    assert [one["pid"] for one in gpu["holders"]] == [4194303]
    assert ended.code == 1


def test_memory_of_a_bystander_is_not_expected_back(theatre: Theatre, nvml: FakeNvml) -> None:
    """Somebody else's memory on the same device stays his; his process is a look-alike and lives."""
    cast = theatre.launch("plain", "rank0", "rank1")
    bystander = theatre.bystander()
    own = f"proc 0 {bystander.pid} 10000"
    nvml.says(*in_use(cast["rank0"].pid), own)
    driver = Driver(nvml, cast["rank0"], idle(IDLE + 10_000, own))
    before = (
        "gpus 2",
        "gpu 1 mem_used 700",
        f"gpu 0 mem_used {USED + 10_000}",
        f"proc 0 {cast['rank0'].pid} 40000",
        own,
    )
    nvml.says(*before)
    ended = theatre.kill_clean(str(cast["rank0"].pid), *FAST, "--gpu-timeout", "5")
    driver.wait()
    _, gpu = gpus(ended.out)
    assert ended.code == 0, ended.out
    assert gpu["returned"] is True
    assert lives(bystander)


def test_nvml_that_fails_after_the_end_is_not_proved(theatre: Theatre, nvml: FakeNvml) -> None:
    """The members are gone, but NVML cannot be read any more: exit 3, never 0."""
    cast = theatre.launch("plain", "rank0", "rank1")
    nvml.says(*in_use(cast["rank0"].pid))
    driver = Driver(nvml, cast["rank0"], ("fail nvmlDeviceGetCount_v2 999", "gpus 2"))
    ended = theatre.kill_clean(str(cast["rank0"].pid), *FAST, "--gpu-timeout", "1")
    driver.wait()
    assert ended.code == 3, ended.out
    assert "NVMLError" in gpus(ended.out)[0]["gpus_unread"]
    assert not lives(cast["rank0"])


def test_nvml_that_hangs_after_the_end_does_not_hang_hangdoc(theatre: Theatre, nvml: FakeNvml) -> None:
    """A driver that never answers costs its deadline and the proof: exit 3."""
    cast = theatre.launch("plain", "rank0", "rank1")
    nvml.says(*in_use(cast["rank0"].pid))
    driver = Driver(nvml, cast["rank0"], (*idle(), "hang nvmlDeviceGetCount_v2"))
    ended = theatre.kill_clean(str(cast["rank0"].pid), *FAST, "--gpu-timeout", "1")
    driver.wait()
    assert ended.code == 3, ended.out
    assert "did not return" in gpus(ended.out)[0]["gpus_unread"]


IN_OWN_DEV = """
set -e
mount -t tmpfs tmpfs "$1"
for name in null zero random urandom; do touch "$1/$name"; mount --bind "/dev/$name" "$1/$name"; done
mkdir "$1/shm"
touch "$1/nvidia0" "$1/nvidiactl"
mount --rbind "$1" /dev
shift
exec "$@"
"""

WITH_A_GPU = """
import json, os, subprocess, sys
opened = os.open("/dev/nvidia0", os.O_RDONLY)
os.set_inheritable(opened, True)
folder, server, command = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
launch = subprocess.Popen(server, pass_fds=(opened,), start_new_session=True, stdin=subprocess.DEVNULL)
os.close(opened)
heard = os.open(os.environ["HANGDOC_TEST_FIFO"], os.O_RDONLY)
told = b""
while told.count(b"\\n") < 3:
    told += os.read(heard, 1024)
done = subprocess.run([*command, str(launch.pid)], stdin=subprocess.DEVNULL, capture_output=True)
launch.wait()
sys.stdout.write(json.dumps({"code": done.returncode, "out": done.stdout.decode(), "err": done.stderr.decode()}))
"""


def test_an_open_gpu_without_nvml_is_never_a_success(theatre: Theatre, nvml: FakeNvml, tmp_path: Path) -> None:
    """A member had a GPU open and NVML cannot be read, before or after: everybody is gone, and the code is 3."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip(f"{NOT_TO_BE_HAD}a /dev of its own needs root and unshare")
    dev = tmp_path / "dev"
    dev.mkdir()
    nvml.says("fail nvmlInitWithFlags 999")
    command = argv("kill-clean", *FAST, "--gpu-timeout", "1")
    driver = [sys.executable, "-S", "-c", WITH_A_GPU, str(tmp_path), json.dumps(theatre.server()), json.dumps(command)]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", IN_OWN_DEV, "sh", str(dev), *driver],
        env={**theatre.environment("plain"), **{name: os.environ[name] for name in ("LD_LIBRARY_PATH", "FAKE_NVML")}},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    if "mount" in done.stderr and done.returncode:
        pytest.skip(f"{NOT_TO_BE_HAD}mounting is refused: {done.stderr.strip()}")
    told = json.loads(done.stdout)
    assert told["code"] == 3, told
    launch = json.loads(told["out"])["launches"][0]
    assert {path for one in launch["before"]["gpu_open"] for path in one["paths"]} == {"/dev/nvidia0"}
    assert launch["done"]["survivors"] == []
    assert launch["after"]["memory_returned"] is None


def memory(used: int, *holders: GpuHolder) -> GpuMemory:
    return GpuMemory(0, "fake", used << 20, holders)


@pytest.fixture
def opened() -> dict[int, tuple[str, ...]]:
    return {7: ("/dev/nvidia0",)}


def test_host_pids_count_by_their_leaving(opened: dict[int, tuple[str, ...]]) -> None:
    """Where NVML tells the host's pids, those count as the launch's that left the device's list with it."""
    theirs, other = GpuHolder(90_001, 40_000 << 20), GpuHolder(90_002, 5_000 << 20)
    before = Before(opened=opened, gpus=GpuReading((memory(45_500, theirs, other),)))
    back = compare(before, GpuReading((memory(5_500, other),)))
    assert [one.returned for one in back] == [True]
    gone_without_memory = compare(before, GpuReading((memory(45_500, other),)))
    assert [one.returned for one in gone_without_memory] == [False]


def test_amounts_that_are_not_told_prove_nothing(opened: dict[int, tuple[str, ...]]) -> None:
    """Where the driver does not tell what each process has, less use is no proof: not known, never returned."""
    before = Before(opened=opened, gpus=GpuReading((memory(45_500, GpuHolder(7, None, member=True)),)))
    assert [one.returned for one in compare(before, GpuReading((memory(500),)))] == [None]
