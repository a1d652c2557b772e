"""HD307: torch.compile is tracing, compiling or tuning a graph (dynamo, inductor)."""

from __future__ import annotations

import re

from hangdoc.hypotheses._toolchains import Toolchain, compiles_with

HYPOTHESIS = compiles_with(
    Toolchain("torch.compile", re.compile(r"(?:^|/)torch/(?:_inductor|_dynamo|_functorch)/")),
    "HD307",
    "slow-start-torch-compile",
    "Wait, or start without torch.compile; keep TORCHINDUCTOR_CACHE_DIR between starts.",
)
