"""Recognises glibc's descriptor of a thread, which says which kernel thread a pthread_t is.

struct pthread (nptl/descr.h) has the same three fields in a row on every machine and in every version looked at
(2.31 to 2.43): `list_t list` (next, prev), then `pid_t tid`. Where they begin depends on the machine: on x86-64 the
header before them is tcbhead_t in 704 bytes, on aarch64 24 pointers. All descriptors are linked in lists whose
neighbours point back, which memory that is no descriptor hardly does.
"""

from __future__ import annotations

import struct

from hangdoc.memory.image import Image, UnreadableError, u64

TID_OFFSET = {"x86_64": 720, "aarch64": 208}
LIST_BYTES = 16


def is_tid_of_descriptor(image: Image, address: int) -> bool:
    """Tell whether the word at an address is the tid of a thread's descriptor."""
    node = address - LIST_BYTES
    try:
        following, previous = struct.unpack("<QQ", image.read(node, LIST_BYTES))
        return u64(image, following + 8) == node and u64(image, previous) == node
    except UnreadableError:
        return False


def tid_of(image: Image, pthread: int, machine: str) -> int | None:
    """Return the tid of a pthread_t (0: its thread has ended); None when there is no descriptor, or none we know."""
    offset = TID_OFFSET.get(machine)
    if offset is None or pthread % 16:
        return None
    address = pthread + offset
    try:
        tid = int.from_bytes(image.read(address, 4), "little")
    except UnreadableError:
        return None
    return tid if is_tid_of_descriptor(image, address) else None
