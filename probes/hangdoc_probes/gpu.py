"""What NVML says of the GPUs: memory and use by process, utilisation, power, clocks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from hangdoc.model.gpu import ClockReason, ComputeMode, FabricState, Gpu, GpuHealth, GpuProcess, Gpus
from hangdoc.model.reading import Known, Missing, Reading, Reason
from hangdoc.model.snapshot import Payload, Sample
from hangdoc.sampling.probe import Context, Probe, Round, Session
from hangdoc_probes._kernel_log import KernelLog
from hangdoc_probes._nvml import NvmlChild, NvmlSilentError
from hangdoc_probes._reading import DENIED

NAME = "gpu"
ANSWER_S = 3.0
"""For one poll of all devices. On one H200 the first took 0.14 s (the program's start included) and the next 0.3 ms,
but without a persistence daemon the first call loads the driver; arbitrary beyond that."""
MOST_HELD = 2
"""Programs the kernel may hold in the driver before no further one is started; arbitrary."""

REASONS: dict[str, Reason] = {
    "NVMLError_LibraryNotFound": "not-installed",
    "NVMLError_DriverNotLoaded": "not-installed",
    "NVMLError_NoPermission": "denied",
    "NVMLError_NotSupported": "unsupported",
    "NVMLError_FunctionNotFound": "unsupported",
    "NVMLError_Timeout": "timeout",
}
REMEDIES: dict[Reason, str] = {
    "not-installed": "start hangdoc where nvidia-smi works: on the host, or in a container with the GPUs (--gpus all)",
    "denied": "run hangdoc as root (sudo)",
    "timeout": "look for NVRM and Xid lines in the kernel's log (dmesg): the driver does not answer",
    "failed": "look for NVRM and Xid lines in the kernel's log (dmesg), and compare with nvidia-smi",
}

EVENT_CALLS = ("nvmlEventSet", "nvmlDeviceRegisterEvents")
"""Calls that are for errors only: when one of them does not return, the next program does without."""

WITHOUT_EVENTS = "--without-events"

CLOCK_REASONS: tuple[tuple[int, ClockReason], ...] = (
    (0x1, "idle"),
    (0x2, "clocks-set"),
    (0x4, "power-cap"),
    (0x8, "slowdown"),
    (0x10, "sync-boost"),
    (0x20, "hot"),
    (0x40, "hardware-hot"),
    (0x80, "power-brake"),
    (0x100, "display"),
)
"""Bits of nvmlClocksEventReasons (nvml.h)."""

COMPUTE_MODES: tuple[ComputeMode, ...] = ("default", "exclusive-thread", "prohibited", "exclusive-process")
FABRIC_STATES: tuple[FabricState, ...] = ("none", "not-started", "in-progress", "completed")

T = TypeVar("T")


class GpuSession:
    """Keeps one program that asks NVML."""

    def __init__(self, devices: Path) -> None:
        self._devices = devices
        self._child: NvmlChild | None = None
        self._held = 0
        self._ended_cpu_s = 0.0
        self._none = False
        self._over = False
        self._options: tuple[str, ...] = ()
        self._log = KernelLog()

    @property
    def children_cpu_s(self) -> float:
        """CPU time of the programs so far."""
        return self._ended_cpu_s + (self._child.cpu_s() if self._child else 0.0)

    def interrupt(self) -> None:
        """End the program, so that a take in progress ends."""
        self._over = True
        if self._child:
            self._child.kill()

    def take(self, now: Round) -> Iterable[Sample]:
        """Poll all devices once."""
        del now  # the host is the same in every round
        taken_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        yield Sample(probe=NAME, process=None, taken_ns=taken_ns, reading=self.read())

    def close(self) -> None:
        """End the program."""
        self._end_program()
        self._log.close()

    def _end_program(self) -> None:
        if self._child:
            self._ended_cpu_s += self._child.cpu_s()
            self._held += not self._child.close()
            self._child = None

    def read(self) -> Reading[Payload]:
        """Poll all devices; a host without any is a reading too."""
        has_devices = any(self._devices.glob("nvidia*"))
        if self._none and not has_devices:
            return Known(Gpus(()))
        if self._held >= MOST_HELD:
            return _missing("timeout", "the driver holds every program that asked it")
        answer = self._ask()
        if isinstance(answer, Missing):
            return answer
        if "error" in answer and not has_devices and REASONS.get(answer["error"]) == "not-installed":
            self._none = True
            self._end_program()
            return Known(Gpus(()))
        log = self._log.read()
        return reading(answer, lambda devices: Gpus(tuple(map(gpu, range(len(devices)), devices)), log))

    def _ask(self) -> dict[str, Any] | Missing:
        if self._child is None:
            try:
                self._child = NvmlChild(*self._options)
            except OSError as error:
                return _not_started(error)
            if self._over:  # interrupted while it started
                self._child.kill()
        try:
            answer: dict[str, Any] = self._child.ask(ANSWER_S)
        except NvmlSilentError as silent:
            self._end_program()
            if silent.call.startswith(EVENT_CALLS):
                self._options = (WITHOUT_EVENTS,)
            if silent.ended:
                return _missing("failed", f"the program that asks NVML ended in {silent.call}")
            return _missing("timeout", f"{silent.call} did not return within {ANSWER_S:g} s")
        return answer


def reading(answer: dict[str, Any], convert: Callable[[Any], T]) -> Reading[T]:
    """Turn an answer of the program into a reading.

    >>> reading({"value": 40}, lambda percent: percent / 100)
    Known(value=0.4)
    >>> reading({"error": "NVMLError_GpuIsLost", "text": "GPU is lost"}, int).detail
    'NVMLError_GpuIsLost: GPU is lost'
    """
    if "error" not in answer:
        return Known(convert(answer["value"]))
    return _missing(REASONS.get(answer["error"], "failed"), f"{answer['error']}: {answer['text']}")


def gpu(index: int, device: dict[str, Any]) -> Gpu:
    """Make the record of a device, each field on its own."""
    name = reading(device["name"], str)
    return Gpu(
        index=index,
        name=name.value if isinstance(name, Known) else f"GPU {index}",
        used_bytes=reading(device["memory"], lambda memory: int(memory[0])),
        total_bytes=reading(device["memory"], lambda memory: int(memory[1])),
        util_ratio=reading(device["use"], lambda percent: percent / 100),
        power_w=reading(device["power"], lambda milliwatts: milliwatts / 1000),
        power_limit_w=reading(device["limit"], lambda milliwatts: milliwatts / 1000),
        processes=reading(
            device["processes"], lambda found: tuple(_process(pid, used, device["uses"]) for pid, used in found)
        ),
        sm_clock_mhz=reading(device["clock"], int),
        sm_clock_most_mhz=reading(device["clock_most"], int),
        compute_capability=reading(device["capability"], lambda version: (int(version[0]), int(version[1]))),
        peers=reading(device["peers"], tuple),
        memory_clock_mhz=reading(device["memory_clock"], int),
        clock_reasons=reading(device["reasons"], clock_reasons),
        health=reading(device["health"], _health),
    )


def clock_reasons(bits: int) -> tuple[ClockReason, ...]:
    """Return the names of the bits that are set.

    >>> clock_reasons(0x44)
    ('power-cap', 'hardware-hot')
    """
    return tuple(name for bit, name in CLOCK_REASONS if bits & bit)


def _health(found: dict[str, Any]) -> GpuHealth:
    """Make the record of what a card complains of, each field on its own."""
    rows = found["rows"]
    return GpuHealth(
        ecc_errors=reading(found["ecc"], int),
        remapped_rows=reading(rows, lambda told: int(told[0]) + int(told[1])),
        remap_pending=reading(rows, lambda told: bool(told[2])),
        remap_failed=reading(rows, lambda told: bool(told[3])),
        nvlinks=reading(found["links"], lambda told: (int(told[0]), int(told[1]))),
        fabric=reading(found["fabric"], lambda state: FABRIC_STATES[state] if state < len(FABRIC_STATES) else "none"),
        mig=reading(found["mig"], lambda told: bool(told[0])),
        compute_mode=reading(found["mode"], lambda mode: COMPUTE_MODES[mode]),
        xids=reading(found["xids"], tuple),
    )


def _process(pid: int, used_bytes: int | None, uses: dict[str, Any]) -> GpuProcess:
    memory: Reading[int] = (
        Known(used_bytes)
        if used_bytes is not None
        else _missing("unsupported", "the driver does not tell this process's memory")
    )
    percents = reading(uses, lambda found: [percent for user, percent in found if user == pid])
    util = Known(max(percents.value, default=0) / 100) if isinstance(percents, Known) else percents
    return GpuProcess(pid, memory, util, Known(Path(f"/proc/{pid}").exists()))


def _missing(reason: Reason, detail: str) -> Missing:
    return Missing(NAME, reason, detail, REMEDIES.get(reason, ""))


def _not_started(error: OSError) -> Missing:
    reason: Reason = "denied" if error.errno in DENIED else "failed"
    detail = f"the program that asks NVML does not start: {sys.executable}: {error.strerror}"
    return Missing(NAME, reason, detail, "install hangdoc where this user may run it; ulimit -n and -u may be too low")


def open_session(context: Context, devices: Path = Path("/dev")) -> Session:
    """Start reading the host's GPUs."""
    del context
    return GpuSession(devices)


def check(proc: Path, devices: Path = Path("/dev")) -> Reading[str]:
    """Say which GPUs NVML shows here."""
    del proc
    session = GpuSession(devices)
    try:
        found = session.read()
    finally:
        session.close()
    if isinstance(found, Missing):
        return found
    assert isinstance(found.value, Gpus)
    names = [device.name for device in found.value.devices]
    return Known(f"GPUs: {', '.join(names)}" if names else "this host has no NVIDIA GPU")


PROBE = Probe(
    name=NAME,
    title="memory and use by process, utilisation, power, clocks, health and errors of each GPU",
    open=open_session,
    check=check,
    background=True,
    deadline_s=2 * ANSWER_S,
    host=True,
    reads=("NVML", "/dev/nvidia*", "/dev/kmsg"),
)
