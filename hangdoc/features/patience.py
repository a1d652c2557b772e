"""How long a phase may show nothing before silence itself speaks for a hang."""

from __future__ import annotations

from hangdoc.model.log import Phase

PATIENCE_S: dict[Phase, float] = {
    "launch": 120.0,
    "rendezvous": 300.0,
    "weight-load": 3600.0,
    "memory-pool": 300.0,
    "jit-compile": 3600.0,
    "graph-capture": 900.0,
    "warmup": 600.0,
    "ready": 300.0,
    "serving": 300.0,
    "shutdown": 120.0,
}
"""Seconds. launch: imports took 8 to 45 s on idle machines, 114 s on an overloaded one. rendezvous: peers of one start
come within minutes; torch itself gives up after 10 to 30. weight-load: public reports have healthy starts that were
silent for about 60 min after the last shard. graph-capture: one was silent for 595 s. warmup: SGLang's own limit for
its warm-up request is 600 s. serving: its forward watchdog's is 300 s. memory-pool, shutdown: arbitrary."""
