"""Redaction of names and paths: what may stay of a file, a thread, a function, a GPU.

Each rule takes the table of tokens and a text and returns what stays of it. What no allow-list knows becomes a token.
"""

from __future__ import annotations

import re

from hangdoc.trace import allowed
from hangdoc.trace.tokens import Tokens


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.ASCII)


_KERNEL_OBJECT = _any_of(
    r"(?:pipe|socket|mnt|net|pid|user|uts|ipc|cgroup|time):\[\d{1,20}\]",
    r"anon_inode:\[?[a-z_-]{1,24}\]?",
    r"/dev/(?:null|zero|full|random|urandom|tty|ptmx|console|fuse|kfd|pts/\d{1,6}|tty\d{1,3})",
    r"/dev/nvidia(?:\d{1,3}|ctl|-uvm|-uvm-tools|-modeset|-caps/nvidia-cap\d{1,3}|-caps-imex-channels/channel\d{1,3})",
    r"/dev/(?:dri/(?:card|renderD)\d{1,3}|infiniband/(?:uverbs\d{1,3}|rdma_cm))",
)

_THREAD = _any_of(
    # CPython's own, concurrent.futures, multiprocessing, asyncio
    r"MainThread|QueueFeederThread|QueueManagerThread|ExecutorManagerThread",
    r"(?:Thread|Dummy)-\d{1,6}(?: \(\w{0,60}\)?)?",
    r"ThreadPoolExecutor-\d{1,6}(?:_\d{0,6})?|ThreadPoolExec\w{0,3}|asyncio_\d{1,6}",
    # anyio, tqdm, torch, the engines' helpers
    r"AnyIO worker thread|tqdm_monitor|InductorSubproc|subproc_worker_timer|subprocess-watchdog|IntraOp\w{0,12}",
    r"pt_[a-z0-9_]{1,20}|gloo[a-z_]{0,16}|ZMQbg/(?:IO/\d{1,3}|Reaper)|libuv-worker|uvloop\w{0,8}",
    # CUDA, NCCL, allocators, run-time libraries
    r"cuda-EvtHandlr|cuda[0-9a-f]{8,12}|nccl[a-zA-Z_]{0,12}|NCCL [A-Za-z ]{1,12}|jemalloc_bg_thd",
    r"iou-(?:wrk|sqp)-\d{1,10}|grpc[a-z_]{1,12}|tokio-runtime-w|OMP[A-Za-z_]{0,12}",
    # programs: the name of a main thread and of every thread that nobody named
    r"python(?:\d(?:\.\d{1,2}t?)?)?|(?:sglang|vllm|VLLM)(?:::[A-Za-z_]{0,12})?|ray::IDLE|raylet|gcs_server|torchrun",
    r"(?:ba|da|z)?sh|sleep|tee|tini|nvcc|cicc|ptxas|fatbinary|cudafe\+\+|ninja|cmake|make|cc1|cc1plus|collect2|as|ld",
    r"(?:gcc|g\+\+|clang|clang\+\+)(?:-\d{1,2})?|c\+\+|cc|lld|py-spy|hangdoc",
)

_FUNCTION = re.compile(r"[A-Za-z_<~][\w.<>:~ ,*&()\[\]]{0,299}")
"""Python's qualified names and the demangled names of native frames. No path, host with a hyphen or address fits."""

_CODE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}", re.ASCII)
_VERSION = re.compile(r"\d{1,4}(?:\.\d{1,6}){1,2}(?:\.?(?:a|b|rc|post|dev)\d{1,6})*(?:\+(?:cpu|cu\d{2,4}))?", re.ASCII)

_SYNTHETIC_FILE = re.compile(
    r"<(?:frozen [\w.]{1,80}|string|stdin|unknown|eval_with_key|__array_function__ internals)>"
)
_PART = r"(?!\.{1,2}(?:/|$))[A-Za-z0-9_.+-]+"
_TAIL = rf"{_PART}(?:/{_PART})*"
_INSTALLED_FILE = re.compile(rf"(?:.*/)?((?:site|dist)-packages/{_TAIL})", re.DOTALL)
_STANDARD_FILE = re.compile(
    rf"(?:.*/)?(lib/python3(?:\.\d{{1,2}}t?)?/{_TAIL}|python3\d{{1,2}}\.zip/{_TAIL})", re.DOTALL
)
_PUBLIC_FILE = re.compile(rf"(?:.*/)?((?:{'|'.join(allowed.PUBLIC_TREES)})(?:/{_TAIL})?)", re.DOTALL)
_LIBRARY_FILE = re.compile(
    rf"(?:.*/)?((?:{'|'.join(allowed.LIBRARIES)})[\w.-]{{0,40}}\.so(?:\.\d{{1,6}}){{0,4}})", re.DOTALL
)

_GPU = re.compile(rf"(?:{'|'.join(allowed.GPU_WORDS)})(?: (?:{'|'.join(allowed.GPU_WORDS)})){{0,8}}", re.ASCII)

_ADDRESS = re.compile(r"(tcp://)?(\[[0-9a-fA-F:.%]+\]|[^\[\]:/\s]+)(:\d{1,5})?", re.ASCII)
_OWN_ADDRESSES = frozenset({"127.0.0.1", "0.0.0.0", "localhost", "[::]", "[::1]", "::", "::1"})  # noqa: S104 - text


def code_name(tokens: Tokens, text: str) -> str:
    """Keep a name that stands in code: a probe's, a log event's, a kernel function's."""
    return text if _CODE_NAME.fullmatch(text) else tokens.of(text, "name")


def stamp(tokens: Tokens, text: str) -> str:
    """Keep the time of a log's line."""
    printed = r"(?:(?:(?:\d{4}-)?\d\d-\d\d )?\d\d:\d\d:\d\d)?"
    return text if re.fullmatch(printed, text, re.ASCII) else tokens.of(text, "text")


def futex_key(tokens: Tokens, text: str) -> str:
    """Keep the device, inode and offset that processes know a shared futex by; they have to stay equal."""
    return (
        text
        if re.fullmatch(r"(?:[0-9a-f]{2,5}:[0-9a-f]{2,5}:\d{1,20}:\d{1,20})?", text, re.ASCII)
        else tokens.of(text, "text")
    )


def state_letter(tokens: Tokens, text: str) -> str:
    """Keep the one letter of a state in /proc and the letters of an access mode."""
    return text if re.fullmatch(r"[A-Za-z]{1,2}", text, re.ASCII) else tokens.of(text, "text")


def machine(tokens: Tokens, text: str) -> str:
    """Keep the name of an architecture."""
    return text if text in allowed.MACHINES else tokens.of(text, "text")


def version(tokens: Tokens, text: str) -> str:
    """Keep a released version; a local label may be anything."""
    return text if _VERSION.fullmatch(text) else tokens.of(text, "text")


def host(tokens: Tokens, text: str) -> str:
    """Keep nothing of a host's name."""
    return tokens.of(text, "host")


def address(tokens: Tokens, text: str) -> str:
    """Keep the port of an address, and the host where it is this machine itself."""
    if text in _OWN_ADDRESSES:
        return text
    match = _ADDRESS.fullmatch(text)
    if match is None:
        return tokens.of(text, "host")
    scheme, name, port = match.groups(default="")
    return scheme + (name if name in _OWN_ADDRESSES else tokens.of(name, "host")) + port


def path(tokens: Tokens, text: str) -> str:
    """Keep what names an object of the kernel (a pipe, a device); of a file only a harmless ending."""
    name = text.removesuffix(" (deleted)")
    kept = name if name in ("", "-") or _KERNEL_OBJECT.fullmatch(name) else tokens.of_path(name)
    return kept + text[len(name) :]


def frame_file(tokens: Tokens, text: str) -> str:
    """Keep where a frame's file lies inside what is public: installed packages, the standard library, known trees.

    Rule, the first that fits: "<frozen ...>" and the like as they are; from the last "site-packages/" or
    "dist-packages/" on, that directory included; from the last "lib/pythonX.Y/" on; from a directory that only a
    known package has ("sglang/srt/", wherever the package was installed) on; the name of a known shared library.
    Why it works: every suffix that reasoning asks for ("torch/distributed/distributed_c10d.py", "/threading.py")
    ends alike before and after, and what is kept is kept again when the trace is redacted twice.
    When it fails: a private package that is installed keeps its module names.
    """
    if _SYNTHETIC_FILE.fullmatch(text):
        return text
    for pattern in (_INSTALLED_FILE, _STANDARD_FILE, _PUBLIC_FILE, _LIBRARY_FILE):
        if match := pattern.fullmatch(text):
            return match.group(1)
    return tokens.of_path(text)


def function(tokens: Tokens, text: str) -> str:
    """Keep a function's name: it is the identity of the code, and the reasoning rests on it."""
    return text if _FUNCTION.fullmatch(text) else tokens.of(text, "function")


def thread(tokens: Tokens, text: str) -> str:
    """Keep the names that Python, torch, the engines and compilers give their threads and processes."""
    return text if not text or _THREAD.fullmatch(text) else tokens.of(text, "name")


def gpu(tokens: Tokens, text: str) -> str:
    """Keep the name of a product."""
    return text if _GPU.fullmatch(text) else tokens.of(text, "gpu")


def rank_dimension(tokens: Tokens, text: str) -> str:
    """Keep the dimensions of parallelism that engines print."""
    return text if text in allowed.RANK_DIMENSIONS else tokens.of(text, "name")


def nothing(tokens: Tokens, text: str) -> str:
    """Leave not even a token: what a process printed must not show in which places it printed the same."""
    del tokens, text
    return ""


def free_text(tokens: Tokens, text: str) -> str:
    """Keep nothing: the rule of every field that nobody listed."""
    return tokens.of(text, "text")
