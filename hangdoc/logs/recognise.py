"""Which engine wrote a log, and what kind of file an input is, by its first and last bytes."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, TypeAlias

from hangdoc import discovery
from hangdoc.logs.lines import loose
from hangdoc.model.process import EngineName

Kind: TypeAlias = Literal["log", "dump", "flight", "ras", "trace", "binary", "empty"]

_SIGNS: tuple[tuple[EngineName, re.Pattern[bytes]], ...] = (
    (
        "sglang",
        re.compile(
            rb"sglang|server_args=|Init torch distributed|Init parallel|fired up and ready|Load weight (?:begin|end)|"
            rb"(?:Prefill|Decode) batch[.,]|\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: (?:DP|PP|TP|EP)\d+)+\]|"
            rb"[Ww]atchdog timeout \(self\.|Capture cuda graph|could finish the model loading|hit an exception:|"
            rb"(?:Scheduler|DataParallelController) watchdog timeout|from detokenizer for last|"
            rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] INFO:     \S"  # how only SGLang has Uvicorn log
        ),
    ),
    (
        "vllm",
        re.compile(
            rb"vllm|vLLM|EngineCore|VllmWorker|shm_broadcast|"
            rb"(?:INFO|WARNING|ERROR|DEBUG) \d\d-\d\d \d\d:\d\d:\d\d \[[\w/]+\.py:\d+\]"
        ),
    ),
    ("torchrun", re.compile(rb"torchrun|torch\.distributed\.(?:run|elastic|launch)|torch/distributed/(?:run|elastic)")),
)

_ODD_RATIO = 0.1
"""Share of control bytes and of bytes that are no UTF-8 from which a file is no text. Arbitrary: logs have few."""

_CONTROLS = bytes(set(range(32)) - {7, 8, 9, 10, 11, 12, 13, 27})


def kind_of(head: bytes) -> Kind:
    """Return what a file is, by its first bytes, unpacked.

    >>> kind_of(b'{"type":"header","schema":1'), kind_of(b'[{"pid": 5, "thread_name"'), kind_of(b"")
    ('trace', 'dump', 'empty')
    """
    if not head.strip():
        return "empty"
    start = head.lstrip()[:4096]
    if start.startswith(b'{"type":"header"'):
        return "trace"
    if start.startswith(b"[") and b'"thread_name"' in start:
        return "dump"
    odd = len(head) - len(head.translate(None, _CONTROLS)) + head.decode("utf-8", "replace").count("\ufffd")
    return "binary" if odd > _ODD_RATIO * len(head) else "log"


def engine_of(*texts: bytes) -> EngineName:
    """Return the engine whose signs are the most frequent in pieces of a log; generic where there is none.

    >>> engine_of(b"(EngineCore_DP0 pid=1) INFO 12-09 11:25:53 [shm_broadcast.py:466] x"), engine_of(b"hello")
    ('vllm', 'generic')
    """
    counts = {name: sum(_count(sign, name, text) for text in texts) for name, sign in _SIGNS}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else "generic"


def _count(sign: re.Pattern[bytes], name: EngineName, text: bytes) -> int:
    return len(sign.findall(text)) + len(_own_lines(name).findall(text))


@lru_cache
def _own_lines(name: EngineName) -> re.Pattern[bytes]:
    """Return a pattern for the lines that this engine prints and no other program."""
    shared = {line.name for line in discovery.engine("generic").log_lines}
    others = {"http-started", "http-listening", "ready", "generate-done", "shutdown", "nccl-version"}
    own = [loose(line) for line in discovery.engine(name).log_lines if line.name not in shared | others]
    return re.compile("|".join(own).encode() or rb"(?!)")
