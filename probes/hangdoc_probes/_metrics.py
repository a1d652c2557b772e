"""Read the text format of Prometheus, as far as a server's requests and tokens go."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from hangdoc.model.http import ServerMetrics
from hangdoc.model.process import EngineName
from hangdoc.model.reading import Known, Missing, Reading

NAME = "http"

COUNTERS: Mapping[EngineName, Mapping[str, tuple[str, ...]]] = {
    "sglang": {
        "running": ("sglang:num_running_reqs",),
        "waiting": ("sglang:num_queue_reqs",),
        # The first two are counted when a request has ended, the third by the scheduler as it goes.
        "tokens": ("sglang:prompt_tokens_total", "sglang:generation_tokens_total", "sglang:realtime_tokens_total"),
        "finished": ("sglang:num_requests_total",),
    },
    "vllm": {
        "running": ("vllm:num_requests_running",),
        "waiting": ("vllm:num_requests_waiting",),
        "tokens": ("vllm:prompt_tokens_total", "vllm:generation_tokens_total"),
        "finished": ("vllm:request_success_total",),
    },
}
"""Names of metrics by engine: SGLang 0.5.23 (observability/metrics_collector.py), vLLM V1 (v1/metrics/loggers.py)."""

_ROW = re.compile(rb"([a-zA-Z_:][a-zA-Z0-9_:]{0,200})(?:\{[^\n]{0,4000}\})?[ \t]+([^ \t\n]{1,40})(?:[ \t]+-?\d{1,20})?")
LARGEST = 2.0**62
"""No counter of requests or tokens gets there: what is larger, infinite or no number is no such counter."""


def parse_metrics(text: bytes, engine: EngineName) -> ServerMetrics:
    r"""Read a page of metrics; rows of one name are added up, a name that no row has is Missing.

    >>> page = b'# HELP x y\nvllm:num_requests_running{engine="0"} 2.0\nvllm:num_requests_running{engine="1"} 1.0\n'
    >>> parse_metrics(page, "vllm").running
    Known(value=3)
    """
    sums: dict[str, float] = {}
    for line in text.splitlines():
        row = None if line.startswith(b"#") else _ROW.fullmatch(line.strip())
        if row is not None and (value := _number(row[2])) is not None:
            name = row[1].decode("ascii")
            sums[name] = sums.get(name, 0.0) + value
    names = COUNTERS[engine]
    return ServerMetrics(**{field: _sum(sums, names[field]) for field in names})


def _number(text: bytes) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 <= value < LARGEST else None


def _sum(sums: Mapping[str, float], names: tuple[str, ...]) -> Reading[int]:
    found = [sums[name] for name in names if name in sums]
    if not found:
        return Missing(NAME, "unsupported", "the server does not publish it")
    return Known(int(sum(found)))
