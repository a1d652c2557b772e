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

PR_SET_PDEATHSIG = 1

FIELDS = ("name", "memory", "use", "power", "limit", "clock", "clock_most", "processes", "uses")

RECENT_S = 2.5
"""How old the driver's samples of a process may be: it takes some every second, and a poll comes every second.
Arbitrary above that."""

Answer = dict[str, Any]


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


def poll() -> Answer:
    """Ask for every device."""
    count = ask("nvmlDeviceGetCount")
    return then(count, lambda devices: [device(index) for index in range(devices)])


def device(index: int) -> Answer:
    """Ask for one device; without a handle every field is the handle's error."""
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
    }


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
    for _ in sys.stdin:
        if "error" in begun:
            begun = ask("nvmlInit")
        print(json.dumps(begun if "error" in begun else poll()), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
