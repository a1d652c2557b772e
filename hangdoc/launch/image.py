"""Tell a fork from a program of its own: a fork without exec keeps the random addresses of its parent's memory."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from hangdoc.launch.table import is_same
from hangdoc.model.process import ProcessKey
from hangdoc.procfs.errors import ProcParseError
from hangdoc.procfs.stat import split_stat

Image: TypeAlias = tuple[bytes, ...]
"""Where one exec put code, stack and heap."""

PLACES = (23, 25, 44)
"""startcode, startstack, start_brk among the fields behind the name (proc_pid_stat(5): 26, 28, 47)."""

FULLY_RANDOM = "2"
"""Of kernel.randomize_va_space: with less, or off for a process, every run of a program has equal addresses."""

ADDR_NO_RANDOMIZE = 0x0040000
"""include/uapi/linux/personality.h."""


def read_image(proc: Path, key: ProcessKey) -> Image | None:
    """Return what tells one exec from every other, None when it may not be read or addresses are not random.

    Rule: equal images are one exec, the processes have forked from each other. Stack, heap and program each lie at a
    random address (together more than 40 bits), so two runs of one program never agree. It fails where randomisation is
    off, which is noticed, and where the kernel hides the addresses (zeros), which is noticed too.
    """
    directory = proc / str(key.pid)
    try:
        _, _, fields = split_stat((directory / "stat").read_bytes())
        image = tuple(fields[place] for place in PLACES)
        random = (proc / "sys/kernel/randomize_va_space").read_text().strip() == FULLY_RANDOM
        fixed = int((directory / "personality").read_text(), 16) & ADDR_NO_RANDOMIZE
    except (OSError, ValueError, IndexError, ProcParseError):
        return None
    if fixed or not random or b"0" in image or not is_same(proc, key):
        return None
    return image
