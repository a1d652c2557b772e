"""GPUs as NVML reports them."""

from __future__ import annotations

from msgspec import Struct

from hangdoc.model.reading import Reading


class GpuProcess(Struct, frozen=True, array_like=True):
    """One process's memory on one GPU; pid as NVML gives it (a host pid in some containers)."""

    pid: int
    used_bytes: Reading[int]


class Gpu(Struct, frozen=True, kw_only=True):
    """One device. util_ratio: share of the sample period in which a kernel ran, 0 to 1."""

    index: int
    name: str
    used_bytes: Reading[int]
    total_bytes: Reading[int]
    util_ratio: Reading[float]
    power_w: Reading[float]
    power_limit_w: Reading[float]
    processes: Reading[tuple[GpuProcess, ...]]


class Gpus(Struct, frozen=True, tag="gpu"):
    """The gpu probe's reading of the host; no devices is a reading too: an empty tuple."""

    devices: tuple[Gpu, ...]
