"""GPUs as NVML reports them."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from hangdoc.model.reading import Missing, Reading

ClockReason: TypeAlias = Literal[
    "idle", "clocks-set", "power-cap", "slowdown", "sync-boost", "hot", "hardware-hot", "power-brake", "display"
]
"""Why a card's clocks are not at their highest, as NVML's bits say."""

ComputeMode: TypeAlias = Literal["default", "exclusive-thread", "prohibited", "exclusive-process"]
FabricState: TypeAlias = Literal["none", "not-started", "in-progress", "completed"]
"""none: the card is on no NVSwitch fabric. Until it is completed CUDA does not start on a card of one."""

OLDER = Missing("gpu", "not-taken", "the trace is older than this reading")


class GpuProcess(Struct, frozen=True, array_like=True):
    """One process's memory on one GPU; pid as NVML gives it (a host pid in some containers).

    util_ratio: share of the last seconds in which a kernel of it ran, 0 to 1; 0 for one that the driver lists no
    sample of. is_here: hangdoc's own /proc has a process of this number; it is another one where the driver gives pids
    of another namespace.
    """

    pid: int
    used_bytes: Reading[int]
    util_ratio: Reading[float] = OLDER
    is_here: Reading[bool] = OLDER


class GpuHealth(Struct, frozen=True, kw_only=True):
    """What a card itself has to complain of.

    ecc_errors: uncorrected since the driver was loaded; remapped_rows: of memory, since ever; remap_pending: rows wait
    for a reset to be remapped; remap_failed: no spare row was left; nvlinks: how many links are active, of how many;
    xids: error numbers that the driver gave while hangdoc watched, in their order.
    """

    ecc_errors: Reading[int]
    remapped_rows: Reading[int]
    remap_pending: Reading[bool]
    remap_failed: Reading[bool]
    nvlinks: Reading[tuple[int, int]]
    fabric: Reading[FabricState]
    mig: Reading[bool]
    compute_mode: Reading[ComputeMode]
    xids: Reading[tuple[int, ...]]


class KernelXid(Struct, frozen=True, array_like=True):
    """A line of the kernel's log in which the driver gives an error.

    since_boot_ns: by the log's own clock, which stands while the machine sleeps; pid: 0 when not told.
    """

    code: int
    since_boot_ns: int
    pid: int = 0


class Gpu(Struct, frozen=True, kw_only=True):
    """One device.

    util_ratio: share of the sample period in which a kernel ran, 0 to 1; power_limit_w: the limit that is enforced;
    sm_clock_mhz: of the processors now, and the highest it can be: a card that is held back does real work at little
    power. compute_capability: major and minor version of its architecture, (12, 0) for SM120; peers: indices of the
    devices whose memory NVML says it can read directly, which is no proof that this works; clock_reasons: what holds
    its clocks back now; health: read seldom.
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
    memory_clock_mhz: Reading[int] = OLDER
    clock_reasons: Reading[tuple[ClockReason, ...]] = OLDER
    health: Reading[GpuHealth] = OLDER


class Gpus(Struct, frozen=True, tag="gpu"):
    """The gpu probe's reading of the host; no devices is a reading too: an empty tuple.

    kernel_xids: errors of any card in the kernel's log since the machine started, the newest ones.
    """

    devices: tuple[Gpu, ...]
    kernel_xids: Reading[tuple[KernelXid, ...]] = OLDER
