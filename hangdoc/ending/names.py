"""The names that engines and their libraries give to what they leave behind, and to lock files; data."""

from __future__ import annotations

import re

SEGMENTS: dict[str, re.Pattern[str]] = {
    "SGLang's load snapshot": re.compile(r"sglang_loads_\S+\.shm"),
    "SGLang's message queue": re.compile(r"sgl_shm_mq_\d+_[0-9a-f]+"),
    "SGLang's tokenizer workers": re.compile(r"multi_tokenizer_args_\d+"),
    "Python's shared memory": re.compile(r"psm_[0-9a-f]+"),
    "NCCL": re.compile(r"nccl-\S+"),
    "torch's shared memory": re.compile(r"torch_\d+_\d+(?:_\d+)?"),
    "vLLM's shared memory": re.compile(r"vllm_\S+"),
    "the OpenMP runtime's registration": re.compile(r"__KMP_REGISTERED_LIB_\d+(?:_\d+)?"),
}
"""Files of /dev/shm: who names them so. SGLang, NCCL, torch and Python as their sources have it (sglang_loads: seen
after every kind of exit of 0.5.17; psm_: multiprocessing/shared_memory.py; torch_: aten/src/ATen/MapAllocator.cpp,
"/torch_PID_RANDOM_COUNTER"; __KMP: openmp/runtime/src/kmp_runtime.cpp)."""

SEMAPHORES: dict[str, re.Pattern[str]] = {
    "loky's semaphore": re.compile(r"sem\.loky-\S+"),
    "Python's semaphore": re.compile(r"sem\.mp-\S+"),
}
"""POSIX semaphores are files of /dev/shm that begin with "sem."."""

ZMQ_PATHS = re.compile(
    r"/tmp/tmp[0-9a-z_]{8}"  # noqa: S108  SGLang: tempfile.NamedTemporaryFile (server_args.py, PortArgs)
    r"|(?:/\S*)?/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # vLLM: uuid4 (utils, get_open_zmq_ipc_path)
    r"|/tmp/sglang_[^/]+\.sock"
)
"""Paths that engines bind zmq ipc sockets to."""

LOCK_FILES = re.compile(r"(?:\S*/)?[^/]+\.lock")
"""Locks of Hugging Face, Triton, FlashInfer and torch inductor: the filelock package's and their like."""

BATON = "lock"
"""Name of torch's FileBaton in its build directory (torch/utils/cpp_extension.py); to exist is to be held."""

BUILD_FILES = ("build.ninja", ".ninja_log", "main.cpp", "cuda.cu")
"""What makes a directory one of torch's builds."""


def owner_of(name: str) -> tuple[str, str] | None:
    """Return the kind of a file of /dev/shm and who names it so; None for a name that is nobody's.

    >>> owner_of("psm_1f2e3d4c"), owner_of("sem.loky-77-abc"), owner_of("samples")
    (('shm', "Python's shared memory"), ('semaphore', "loky's semaphore"), None)
    """
    for kind, known in (("shm", SEGMENTS), ("semaphore", SEMAPHORES)):
        for whose, pattern in known.items():
            if pattern.fullmatch(name):
                return kind, whose
    return None
