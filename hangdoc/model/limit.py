"""Timers that act on a launch which stands still: the engine's own and those of the libraries below it."""

from __future__ import annotations

from typing import Literal, TypeAlias

LimitName: TypeAlias = Literal[
    "watchdog", "soft-watchdog", "warmup-request", "load-barrier", "collective", "nccl-monitor", "execute-model"
]
"""What the timer guards."""

GOES_ON: frozenset[LimitName] = frozenset({"soft-watchdog"})
"""Timers after which the launch goes on: they only print what they see."""
