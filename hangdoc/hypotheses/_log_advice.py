"""What to do about a failure that a log names: where to read it, and the command that looks at its usual cause."""

from __future__ import annotations

from shlex import quote

from hangdoc.model.log import LogEvent

BEFORE, AFTER = 5, 60
"""Lines around a failure that are worth reading. Arbitrary: a traceback has 20 to 50."""

_MEMORY = "who else has GPU memory: nvidia-smi; then a smaller --mem-fraction-static or --cuda-graph-max-bs"
_KILLER = "whether the kernel ended it for its memory: dmesg -T | grep -iE 'killed process|oom'"
_PORT = "who has the port: ss -ltnp"
_DRIVER = "the driver against the build: nvidia-smi; python -c 'import torch; print(torch.version.cuda)'"

COMMANDS = {
    "out-of-memory": _MEMORY,
    "memory-too-small": _MEMORY,
    "host-out-of-memory": _KILLER,
    "killed": _KILLER,
    "ended-by-signal": _KILLER,
    "child-signalled": _KILLER,
    "port-taken": _PORT,
    "shared-memory": "the room: df -h /dev/shm; then docker run --shm-size 16g or --ipc=host",
    "disk-full": "the room: df -h",
    "cuda-driver": _DRIVER,
    "cuda-error": "the call that did it: start again with CUDA_LAUNCH_BLOCKING=1; and the GPU: dmesg -T | grep Xid",
    "xid": "the driver's own words: dmesg -T | grep Xid",
    "warmup-refused": "whether a proxy answers: env | grep -i proxy; then NO_PROXY=127.0.0.1,localhost,0.0.0.0",
    "nccl-error": "NCCL's reason: start again with NCCL_DEBUG=INFO",
    "import": "what is installed: pip check",
    "model-denied": "whose token is used: hf auth whoami; then HF_TOKEN, or ask for access on the model's page",
    "no-such-model": "the path or name that was given after --model-path",
    "download-failed": "the network: curl -sI https://huggingface.co; HTTPS_PROXY, HF_ENDPOINT",
    "wrong-arguments": "its options: the same command with --help",
}
"""By the name of a line in the engines' tables."""

KILLED_CODES = frozenset({-9, 137})


def advice(event: LogEvent | None, path: str) -> str:
    """Return what to do next about a failure in the log at a path."""
    if event is None:
        return "Read the first failure in the log and the traceback there; later failures are mostly victims."
    where = f"Read it: {_command(event, path)}" if event.line else "Read the first failure in the log"
    known = _KILLER if event.numbers.get("code", 0) in KILLED_CODES else COMMANDS.get(event.name, "")
    return f"{where}; later failures are mostly victims." + (f" Then see {known}." if known else "")


def _command(event: LogEvent, path: str) -> str:
    lines = f"{max(1, event.line - BEFORE)},{event.line + AFTER}p"
    if not path.endswith(_TEXTS):
        return f"line {event.line} of its log"
    return f"sed -n {lines} {quote(path)}"


_TEXTS = (".log", ".txt", ".out", ".err")
"""Endings of a log that is one file and not packed."""
