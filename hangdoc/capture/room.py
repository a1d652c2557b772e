"""How much room the volume has left, and when that is too little."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

LOW_RATIO, LOW_MOST_BYTES = 0.10, 16 << 30
"""Nearly full: a tenth of the volume is left, of a big volume 16 GiB: some 140 samples of 2,048 tokens. Arbitrary."""

RESERVE_RATIO, RESERVE_MOST_BYTES = 0.01, 1 << 30
"""Full: what stays free for others (of /dev/shm: NCCL, the server's own queues). Arbitrary."""


@dataclass(frozen=True)
class Room:
    """Bytes of a volume."""

    free_bytes: int
    size_bytes: int

    @property
    def is_low(self) -> bool:
        """Say whether the volume is nearly full."""
        return self.free_bytes < min(self.size_bytes * LOW_RATIO, LOW_MOST_BYTES)

    def is_too_little_for(self, size_bytes: int) -> bool:
        """Say whether the volume would be full with so many bytes more."""
        reserve = min(self.size_bytes * RESERVE_RATIO, RESERVE_MOST_BYTES)
        return self.free_bytes - size_bytes < reserve


def of(directory: Path) -> Room:
    """Return the room of the directory's volume; OSError."""
    volume = os.statvfs(directory)
    return Room(volume.f_bavail * volume.f_frsize, volume.f_blocks * volume.f_frsize)
