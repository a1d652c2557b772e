"""Ask NVML for everything, in a program of its own: a call that the driver never answers holds only this program.

For each line on standard input one poll. Answers are lines: "call NAME" before each call, then one line of JSON. A
value is {"value": X} or {"error": CLASS, "text": MESSAGE}.
"""

from __future__ import annotations

import ctypes
import json
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import pynvml

from hangdoc_probes._nvml_health import Health

PR_SET_PDEATHSIG = 1

FIELDS = (
    *("name", "memory", "use", "power", "limit", "clock", "clock_most", "processes", "uses"),
    *("capability", "peers", "memory_clock", "reasons", "health"),
)

RECENT_S = 2.5
"""How old the driver's samples of a process may be: it takes some every second, and a poll comes every second.
Arbitrary above that."""

Answer = dict[str, Any]


WITHOUT_EVENTS = "--without-events"
"""Given when a wait for events did not return before."""

PEER_STATES = (0, 1)
"""NVML_P2P_CAPS_INDEX_READ and _WRITE (nvml.h); nvidia-ml-py has had tuples under these names."""

ARCHITECTURES: dict[int, dict[str, Answer]] = {}
"""What was told of each device; filled once."""


def ask(name: str, *arguments: Any, version: Any = None) -> Answer:
    """Make one call; whatever NVML answers is an answer."""
    print("call", name, flush=True)  # noqa: T201  standard output is the channel
    keywords = {} if version is None else {"version": version}
    try:
        return {"value": getattr(pynvml, name)(*arguments, **keywords)}
    except pynvml.NVMLError as error:
        return {"error": type(error).__name__, "text": str(error)}


def then(answer: Answer, convert: Callable[[Any], Any]) -> Answer:
    """Convert a value; an error stays."""
    return {"value": convert(answer["value"])} if "value" in answer else answer


def poll(health: Health) -> Answer:
    """Ask for every device."""
    count = ask("nvmlDeviceGetCount")
    return then(count, lambda devices: [device(index, devices, health) for index in range(devices)])


def device(index: int, count: int, health: Health) -> Answer:
    """Ask for one of count devices; without a handle every field is the handle's error."""
    handle = ask("nvmlDeviceGetHandleByIndex", index)
    if "error" in handle:
        return dict.fromkeys(FIELDS, handle)
    to = handle["value"]
    return {
        "name": ask("nvmlDeviceGetName", to),
        "memory": then(memory(to), lambda found: [found.used, found.total]),
        "use": then(ask("nvmlDeviceGetUtilizationRates", to), lambda rates: rates.gpu),
        "power": ask("nvmlDeviceGetPowerUsage", to),
        "limit": ask("nvmlDeviceGetEnforcedPowerLimit", to),
        "clock": ask("nvmlDeviceGetClockInfo", to, pynvml.NVML_CLOCK_SM),
        "clock_most": ask("nvmlDeviceGetMaxClockInfo", to, pynvml.NVML_CLOCK_SM),
        "processes": processes(to),
        "uses": uses(to),
        **architecture(to, index, count),
        "memory_clock": ask("nvmlDeviceGetClockInfo", to, pynvml.NVML_CLOCK_MEM),
        "reasons": reasons(to),
        "health": {"value": health.of(to, index)},
    }


def reasons(to: Any) -> Answer:
    """Ask what holds the clocks back; older drivers know the older name of the call only."""
    answer = ask("nvmlDeviceGetCurrentClocksEventReasons", to)
    if answer.get("error") == "NVMLError_FunctionNotFound":
        return ask("nvmlDeviceGetCurrentClocksThrottleReasons", to)
    return answer


def architecture(to: Any, index: int, count: int) -> dict[str, Answer]:
    """Ask for what does not change while the driver is loaded: once, unless it could not be told."""
    if index not in ARCHITECTURES:
        others = [other for other in range(count) if other != index]
        asked = {"capability": ask("nvmlDeviceGetCudaComputeCapability", to), "peers": peers(to, others)}
        if any("error" in answer for answer in asked.values()):
            return asked
        ARCHITECTURES[index] = asked
    return ARCHITECTURES[index]


def peers(to: Any, others: list[int]) -> Answer:
    """Ask which other devices this one may read and write directly, by what the driver says."""
    found: list[int] = []
    for other in others:
        handle = ask("nvmlDeviceGetHandleByIndex", other)
        if "error" in handle:
            return handle
        states = [ask("nvmlDeviceGetP2PStatus", to, handle["value"], state) for state in PEER_STATES]
        refused = next((state for state in states if "error" in state), None)
        if refused is not None:
            return refused
        if all(state["value"] == pynvml.NVML_P2P_STATUS_OK for state in states):
            found.append(other)
    return {"value": found}


def memory(to: Any) -> Answer:
    """Ask for memory; the second version leaves out what the driver reserves, older drivers have the first only."""
    answer = ask("nvmlDeviceGetMemoryInfo", to, version=pynvml.nvmlMemory_v2)
    return answer if "value" in answer else ask("nvmlDeviceGetMemoryInfo", to)


def processes(to: Any) -> Answer:
    """Ask who has memory on a device: compute contexts first, then graphics, one entry a process."""
    compute = ask("nvmlDeviceGetComputeRunningProcesses", to)
    graphics = ask("nvmlDeviceGetGraphicsRunningProcesses", to)
    if "error" in compute:
        return compute
    found = {process.pid: process.usedGpuMemory for process in graphics.get("value", [])}
    found.update({process.pid: process.usedGpuMemory for process in compute["value"]})
    return {"value": sorted(found.items())}


def uses(to: Any) -> Answer:
    """Ask for how much of the time kernels of each process ran lately, in percent; who is idle is not listed."""
    since_us = int((time.time() - RECENT_S) * 1e6)
    answer = ask("nvmlDeviceGetProcessUtilization", to, since_us)
    if answer.get("error") == "NVMLError_NotFound":
        return {"value": []}
    return then(answer, lambda found: sorted((sample.pid, sample.smUtil) for sample in found))


def main() -> None:
    """Answer until standard input ends, or the thread that started this one does."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    begun = ask("nvmlInit")
    health = Health(ask, events=WITHOUT_EVENTS not in sys.argv)
    for _ in sys.stdin:
        if "error" in begun:
            begun = ask("nvmlInit")
        print(json.dumps(begun if "error" in begun else poll(health)), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
