"""A dump of a card's state that CUDA wrote because hangdoc asked for it, and the kernels that stood in it."""

from __future__ import annotations

from msgspec import Struct

from hangdoc.model.reading import Reading


class KernelDump(Struct, frozen=True, tag="coredump", kw_only=True):
    """The coredump probe's reading of one process. kernels: by name, as cuda-gdb tells them; Missing without it."""

    file: str
    size_bytes: int
    kernels: Reading[tuple[str, ...]]
