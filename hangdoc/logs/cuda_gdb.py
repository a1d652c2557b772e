"""What cuda-gdb prints of a CUDA core dump: the names of the kernels that were running."""

from __future__ import annotations

import re

_ROW = re.compile(
    r"^[* ]\s*\d+\s+\S+\s+\d+\s+\d+\s+\w+\s+0x[0-9a-fA-F]+\s+\([\d,]+\)\s+\([\d,]+\)\s+(?P<kernel>\S.*)$", re.MULTILINE
)
_FRAME = re.compile(r"^#0\s+(?:0x[0-9a-fA-F]+ in )?(?P<kernel>[A-Za-z_][^\n]*?)\s*<<<\(", re.MULTILINE)
_ARGUMENTS = re.compile(r"\([^()]*=[^()]*\)$")

MOST = 16
"""Kernels that are told. Arbitrary."""
LONGEST = 200
"""Letters of a name that are kept: templates may have thousands. Arbitrary."""


def kernels_of(text: str) -> tuple[str, ...]:
    """Return the kernels of `info cuda kernels`, or the one that the first frame is in; each once.

    >>> kernels_of("*      0      -   0    1 Active 0x00000001 (1,1,1) (1,1,1) spin_kernel(cycles=5)")
    ('spin_kernel',)
    >>> kernels_of("#0  0x00007f in ncclDevKernel_AllReduce<<<(8,1,1),(512,1,1)>>> ()")
    ('ncclDevKernel_AllReduce',)
    """
    found = [match["kernel"] for match in _ROW.finditer(text)] or [match["kernel"] for match in _FRAME.finditer(text)]
    names = (_ARGUMENTS.sub("", name.strip())[:LONGEST] for name in found)
    return tuple(dict.fromkeys(names))[:MOST]
