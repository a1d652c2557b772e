"""HD309: Triton compiles or tunes kernels inside the rank."""

from __future__ import annotations

import re

from hangdoc.hypotheses._toolchains import Toolchain, compiles_with

HYPOTHESIS = compiles_with(
    Toolchain("Triton", re.compile(r"(?:^|/)triton/(?:compiler/|runtime/(?:autotuner|jit|build|cache)\.py|backends/)")),
    "HD309",
    "slow-start-triton",
    "Wait; keep TRITON_CACHE_DIR between starts, on a local disk.",
)
