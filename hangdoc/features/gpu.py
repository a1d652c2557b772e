"""What moved on the GPUs within a window."""

from __future__ import annotations

from hangdoc.features.index import Index, Window
from hangdoc.model.gpu import Gpus
from hangdoc.model.reading import Known, Missing, Reading


def gpu_memory_moved(index: Index, window: Window) -> Reading[int]:
    """Return by how many bytes the memory in use changed, over all GPUs; Missing with fewer than two readings."""
    readings = index.known("gpu", None, Gpus, window)
    if len(readings) < 2:
        return index.missing("gpu", None, window)
    (_, begin), (_, end) = readings[0], readings[-1]
    before, after = _used(begin), _used(end)
    if before.keys() != after.keys():
        return Missing("gpu", "failed", "not every GPU was read twice")
    return Known(sum(abs(after[number] - before[number]) for number in after))


def _used(gpus: Gpus) -> dict[int, int]:
    return {gpu.index: gpu.used_bytes.value for gpu in gpus.devices if isinstance(gpu.used_bytes, Known)}
