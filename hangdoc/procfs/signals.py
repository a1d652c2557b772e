"""Parse the signal masks of /proc/PID/status: what a process blocks, ignores and handles."""

from __future__ import annotations

from dataclasses import dataclass

from hangdoc.procfs.errors import refuse


@dataclass(frozen=True, slots=True)
class SignalMasks:
    """Bit masks; signal N is bit N - 1."""

    blocked: int
    ignored: int
    handled: int

    def holds_off(self, number: int) -> bool:
        """Say whether a signal would change nothing: it is ignored, or waits because it is blocked."""
        return bool((self.blocked | self.ignored) >> number - 1 & 1)


def parse_signal_masks(data: bytes) -> SignalMasks:
    r"""Read the masks of a status file.

    >>> masks = parse_signal_masks(b"SigBlk:\t0000000000000000\nSigIgn:\t0000000000004000\nSigCgt:\t0000000000000002\n")
    >>> masks.holds_off(15), masks.holds_off(2)
    (True, False)
    """
    lines = dict(line.split(b":", 1) for line in data.split(b"\n") if b":" in line)
    try:
        return SignalMasks(*(int(lines[label], 16) for label in (b"SigBlk", b"SigIgn", b"SigCgt")))
    except (KeyError, ValueError):
        refuse("status", data)
