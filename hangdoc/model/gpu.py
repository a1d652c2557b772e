"""GPUs as NVML reports them."""

from __future__ import annotations

from msgspec import Struct

from hangdoc.model.reading import Missing, Reading

OLDER = Missing("gpu", "not-taken", "the trace is older than this reading")


class GpuProcess(Struct, frozen=True, array_like=True):
    """One process's memory on one GPU; pid as NVML gives it (a host pid in some containers).

    util_ratio: share of the last seconds in which a kernel of it ran, 0 to 1; 0 for one that the driver lists no
    sample of.
    """

    pid: int
    used_bytes: Reading[int]
    util_ratio: Reading[float] = OLDER


class Gpu(Struct, frozen=True, kw_only=True):
    """One device.

    util_ratio: share of the sample period in which a kernel ran, 0 to 1; power_limit_w: the limit that is enforced;
    sm_clock_mhz: of the processors now, and the highest it can be: a card that is held back does real work at little
    power. compute_capability: major and minor version of its architecture, (12, 0) for SM120; peers: indices of the
    devices whose memory NVML says it can read directly, which is no proof that this works.
    """

    index: int
    name: str
    used_bytes: Reading[int]
    total_bytes: Reading[int]
    util_ratio: Reading[float]
    power_w: Reading[float]
    power_limit_w: Reading[float]
    processes: Reading[tuple[GpuProcess, ...]]
    sm_clock_mhz: Reading[int] = OLDER
    sm_clock_most_mhz: Reading[int] = OLDER
    compute_capability: Reading[tuple[int, int]] = OLDER
    peers: Reading[tuple[int, ...]] = OLDER


class Gpus(Struct, frozen=True, tag="gpu"):
    """The gpu probe's reading of the host; no devices is a reading too: an empty tuple."""

    devices: tuple[Gpu, ...]
