"""What a case tells of a GPU, as the reading that NVML would have given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hangdoc.model.gpu import OLDER, Gpu, GpuHealth, GpuProcess
from hangdoc.model.reading import Known, Reading
from tests.cases.words import UNASKED, at

KEYS = frozenset(
    {"index", "name", "used", "total", "util", "power", "power_limit", "clock", "clock_most", "processes", "xids"}
)


def gpu(one: Mapping[str, Any], number: int) -> Gpu:
    """Return a GPU as a round reads it; what the case does not tell was not asked."""

    def read(name: str) -> Reading[Any]:
        return Known(at(one[name], number)) if name in one else UNASKED

    uses = one.get("processes")
    held = None if uses is None else tuple(_gpu_process(use) for use in uses)
    return Gpu(
        index=one.get("index", 0),
        name=one.get("name", "NVIDIA H100 80GB HBM3"),
        used_bytes=read("used"),
        total_bytes=read("total"),
        util_ratio=read("util"),
        power_w=read("power"),
        power_limit_w=read("power_limit"),
        processes=UNASKED if held is None else Known(held),
        sm_clock_mhz=read("clock"),
        sm_clock_most_mhz=read("clock_most"),
        health=Known(_health(at(one["xids"], number))) if "xids" in one else OLDER,
    )


def _health(xids: list[int] | str) -> GpuHealth:
    """Return a card that is well but for these errors; "unread": nobody could wait for errors."""
    return GpuHealth(
        ecc_errors=Known(0),
        remapped_rows=Known(0),
        remap_pending=Known(value=False),
        remap_failed=Known(value=False),
        nvlinks=Known((18, 18)),
        fabric=Known("completed"),
        mig=Known(value=False),
        compute_mode=Known("default"),
        xids=UNASKED if xids == "unread" else Known(tuple(map(int, xids))),
    )


def _gpu_process(use: Mapping[str, Any]) -> GpuProcess:
    return GpuProcess(use["pid"], Known(use["used"]), Known(use["util"]) if "util" in use else UNASKED)
