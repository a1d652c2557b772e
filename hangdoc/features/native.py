"""Native stacks: which wait of CUDA, NCCL or the kernel the main thread of a rank stands in below Python."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hangdoc.features.index import Index, Window
from hangdoc.model.kernel_dump import KernelDump
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Missing
from hangdoc.model.stack import Frame, Stack, Stacks

PROBE = "native"
MAIN = "MainThread"
"""What py-spy calls it; in a container it has another number than here."""

PLACES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"cu(?:da)?(?:Stream|Event|Ctx|Device)Synchronize\w*"), "waits for the GPU"),
    (re.compile(r"cu(?:da)?LaunchKernel\w*|cuGraphLaunch\w*|cudaGraphLaunch\w*"), "launches work and waits for room"),
    (re.compile(r"cu(?:da)?Mem(?:cpy|set|Free|Alloc|Host)\w*"), "copies, frees or allocates and waits for the GPU"),
    (re.compile(r"cuModule\w+|cuLibrary\w+|cudaFuncGetAttributes"), "loads a kernel"),
    (re.compile(r"ncclCommInit\w*|ncclCommSplit\w*|bootstrap\w+"), "sets up a communicator of NCCL"),
    (re.compile(r"p?nccl(?:Group(?:End|Start)|All\w+|Reduce\w*|Broadcast|Bcast|Send|Recv)"), "is in a call of NCCL"),
    (re.compile(r".*(?:[Cc]ustom_?[Aa]ll_?[Rr]educe|cross_device_reduce|all_reduce_reg).*"), "is in custom all-reduce"),
    (re.compile(r"(?:__)?sched_yield"), "yields the CPU again and again"),
)
"""Functions by which a wait is known, and what whoever is in one does. cuLaunchKernel waits where the queue of launches
is full, or where loading a kernel takes a synchronisation: measured on one H200 with an endless kernel at start-up."""


@dataclass(frozen=True)
class NativePlace:
    """The innermost known function of a native stack. does: what whoever is in it does."""

    frame: Frame
    does: str


def place_of(stack: Stack) -> NativePlace | None:
    """Return the innermost known function of a stack; None when it has none.

    >>> place_of((Frame("0x7f00", "libcuda.so.1", 0), Frame("cuStreamSynchronize", "libcuda.so.1", 0))).does
    'waits for the GPU'
    """
    for frame in stack:
        for pattern, does in PLACES:
            if pattern.fullmatch(frame.function):
                return NativePlace(frame, does)
    return None


def dumped_kernels(index: Index, process: ProcessKey, window: Window) -> tuple[str, ...]:
    """Return the kernels of a CUDA core dump of a process; none without a dump, or where nobody could name them."""
    readings = index.known("coredump", process, KernelDump, window)
    return () if not readings or isinstance(readings[-1][1].kernels, Missing) else readings[-1][1].kernels.value


def native_place(index: Index, process: ProcessKey, window: Window, stacks: Sequence[Stack]) -> NativePlace | None:
    """Return where the main thread of a process stands natively, by its newest native stack, if there is one."""
    readings = index.known(PROBE, process, Stacks, window)
    if not readings:
        return None
    threads = readings[-1][1].threads
    main = next((one for one in threads if one.tid == process.pid or one.name == MAIN), None)
    return None if main is None else place_of(stacks[main.stack])
