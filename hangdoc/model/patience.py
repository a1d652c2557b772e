"""The stages of a launch that have a patience of their own: its phases, and the imports within the first."""

from __future__ import annotations

from typing import Literal, TypeAlias

Stage: TypeAlias = Literal[
    "import",
    "launch",
    "rendezvous",
    "weight-load",
    "memory-pool",
    "jit-compile",
    "graph-capture",
    "warmup",
    "ready",
    "serving",
    "shutdown",
    "unknown",
]
"""Least advanced first; "unknown" last."""
